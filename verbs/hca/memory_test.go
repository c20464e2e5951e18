// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
)

// newHosts creates an in-memory network of hosts 10.0.0.1 and so on, with a station on each.
func newHosts(t *testing.T, hosts int, seed uint64) (*memnet.Network, []*hostCard, []*station) {
	t.Helper()
	n := newNetwork(t, seed)
	var list []*hostCard
	var stations []*station
	for i := range hosts {
		h := newHost(t, n, fmt.Sprintf("host%d", i+1), []netip.Addr{hostAddress(i)})
		list, stations = append(list, h), append(stations, newStation(t, h.Card))
	}
	return n, list, stations
}

func hostAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// Each host reaches every other, and all members of a group receive its messages.
func TestManyHosts(t *testing.T) {
	_, _, stations := newHosts(t, 6, 0)
	for i, from := range stations {
		for k, to := range stations {
			to.receive(1)
			from.post(from.send(uint64(k), from.ah(hostAddress(k).String()), to, from.piece(0, 5)))
			if i == k {
				from.wait(2)
			} else {
				from.wait(1)
				to.wait(1)
			}
		}
	}
	for _, s := range stations[1:] {
		check(t, s.qp.AttachMcast(gid(groupV4), 0))
		s.receive(2)
	}
	stations[0].post(stations[0].toGroup(groupV4, 0, 5))
	for _, s := range stations {
		s.wait(1)
	}
}

// Addresses are added, move to another host and are removed; existing handles follow.
func TestAddressesComeAndGo(t *testing.T) {
	t.Parallel()
	_, hosts, stations := newHosts(t, 3, 0)
	a, b, c := stations[0], stations[1], stations[2]
	moving := address("10.0.0.100")
	_, err := a.pd.CreateAH(guard(t), a.route(moving.String()))
	refused(t, err, verbs.ErrUnreachable, "no host of the in-memory network")
	if strings.Contains(err.Error(), "ip route") { // a hint about the routes of a real host
		t.Error(err)
	}
	check(t, hosts[1].SetAddresses(hostAddress(1), moving))
	b.expectEvents(gidChange)
	ah := a.ah(moving.String())
	b.receive(0)
	a.post(a.send(1, ah, b))
	a.wait(1)
	b.wait(1)

	check(t, hosts[1].SetAddresses(hostAddress(1)))
	check(t, hosts[2].SetAddresses(hostAddress(2), moving))
	eventually(t, "the address to have moved", func() bool {
		c.receive(0)
		a.post(a.send(1, ah, c))
		a.wait(1)
		n, err := c.cq.Poll(make([]verbs.WC, 1))
		check(t, err)
		return n == 1
	})
}

// A link goes down and up: events, and messages sent meanwhile are counted.
func TestLinkGoesDown(t *testing.T) {
	_, hosts, stations := newHosts(t, 2, 0)
	a, b := stations[0], stations[1]
	ah := a.ah("10.0.0.2")
	hosts[0].SetUp(false)
	a.expectEvents(portErr)
	a.post(a.send(1, ah, b))
	a.wait(1)
	hosts[0].SetUp(true)
	a.expectEvents(portActive)
	if got := a.drops()["link_down"]; got != 1 {
		t.Errorf("drops %v", a.drops())
	}
	b.receive(0)
	a.post(a.send(2, ah, b))
	a.wait(1)
	b.wait(1)
	check(t, hosts[0].SetMTU(1500))
	a.expectEvents(mtuChange)
}

// The network counts the frames that it loses: sent = delivered + lost, and the seed determines them.
func TestLossInMemory(t *testing.T) {
	lost := func(seed uint64) uint64 {
		n, _, stations := newHosts(t, 2, seed)
		a, b := stations[0], stations[1]
		ah := a.ah("10.0.0.2")
		check(t, n.Impair(memnet.Impairment{Loss: 0.3}))
		const count = 200
		for i := range count {
			if i%depth == 0 && i > 0 {
				b.poll()
			}
			_ = b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{b.piece(i%depth, slotLen)}}})
			a.post(a.send(uint64(i), ah, b, a.piece(0, 10)))
			a.wait(1)
		}
		eventually(t, "all that was not lost", func() bool {
			return b.device.engine.Counters().Received+n.Counters().Lost == count
		})
		return n.Counters().Lost
	}
	first, again, other := lost(1), lost(1), lost(2)
	if first != again || first == other || first == 0 {
		t.Errorf("lost %d, %d with the same seed, %d with another", first, again, other)
	}
}

// poll handles the available completions.
func (s *station) poll() {
	s.Helper()
	_, err := s.cq.Poll(make([]verbs.WC, 64))
	check(s, err)
}

// A closed host is unreachable for the others; the network closes the remaining hosts.
func TestHostLeaves(t *testing.T) {
	n, hosts, stations := newHosts(t, 3, 0)
	ah := stations[0].ah("10.0.0.2")
	check(t, hosts[1].Close())
	eventually(t, "the address to be unreachable", func() bool {
		stations[0].post(stations[0].send(1, ah, stations[1]))
		stations[0].wait(1)
		return stations[0].drops()["unreachable"] > 0
	})
	s := newStation(t, newHost(t, n, "late", []netip.Addr{address("10.0.0.9")}).Card)
	s.receive(0)
	stations[2].post(stations[2].send(1, stations[2].ah("10.0.0.9"), s))
	s.wait(1)
	check(t, errors.Join(n.Close(), n.Close()))
	_, err := s.ctx.AllocPD()
	refused(t, err, verbs.ErrClosed)
}
