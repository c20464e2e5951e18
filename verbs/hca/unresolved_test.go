// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
	"github.com/vishvananda/netlink"
)

// silentNetworks are on a host's link, and have no neighbours that respond.
var silentNetworks = map[string]func(i int) string{
	"10.88.0.0/16": func(i int) string { return fmt.Sprintf("10.88.%d.%d", i>>8, i&255) },
	"fd88::/64":    func(i int) string { return fmt.Sprintf("fd88::%x", i+1) },
}

// silentEntries counts the entries of a host's neighbour table in a network.
func silentEntries(t testing.TB, host *lab.Namespace, network string) (n int) {
	t.Helper()
	list, err := host.Netlink().NeighList(eth0(t, host).Attrs().Index, netlink.FAMILY_ALL)
	check(t, err)
	for _, entry := range list {
		if at, ok := netip.AddrFromSlice(entry.IP); ok && netip.MustParsePrefix(network).Contains(at.Unmap()) {
			n++
		}
	}
	return n
}

// quietly creates an address handle without waiting for the neighbour.
func (s *station) quietly(session *Session, pd provider.Handle, to string) error {
	s.Helper()
	_, err := session.ahs.create(s.Context(), provider.CreateAHRequest{PD: pd, Attr: *s.route(to), NoWait: true})
	return err
}

// TestUnresolvedNeighboursOfAUser: the kernel has 64 entries for the silent neighbours of a user, and none when its
// session has ended. Beside it another user resolves its own peer.
func TestUnresolvedNeighboursOfAUser(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for network := range silentNetworks {
		addRoute(t, hosts.A, netlink.Route{Scope: netlink.SCOPE_LINK}, network)
	}
	l := newStationsOn(t, hosts)
	for network, silent := range silentNetworks {
		t.Run(network, func(t *testing.T) {
			eve := quota.New("eve", Limits{}, nil)
			session, err := l.a.device.NewSession(SessionConfig{Quota: eve})
			check(t, err)
			pd, err := provider.Do(session, provider.AllocPD, provider.None{})
			check(t, err)
			made := 0
			for made < 300 {
				if err = l.a.quietly(session, pd.PD, silent(made)); err != nil {
					break
				}
				made++
			}
			refused(t, err, verbs.ErrLimit, "eve has 64")
			if n := silentEntries(t, l.A, network); made != quota.MostUnresolved || n != made {
				t.Errorf("got %d handles, %d entries", made, n)
			}
			mia := l.a.another(SessionConfig{Quota: quota.New("mia", Limits{}, nil)})
			message(t, mia, l.b, mia.ah("10.77.0.2"), []byte("beside eve"))
			check(t, session.Close())
			if n := silentEntries(t, l.A, network); n != 0 || eve.Unresolved() != 0 {
				t.Errorf("%d entries are left, %d are charged to eve", n, eve.Unresolved())
			}
		})
	}
}

// TestGroupsOfUnresolvedNeighbours: for a user that connects repeatedly, the kernel keeps 64 entries for silent IPv6
// neighbours and 64 for their solicited-node groups, and none when its sessions have ended. Neighbours that share a
// group keep it until the last one is released.
func TestGroupsOfUnresolvedNeighbours(t *testing.T) {
	t.Parallel()
	const network, groups = "fd88::/64", "ff02::1:ffab:0/112"
	hosts := labtest.Pair(t)
	addRoute(t, hosts.A, netlink.Route{Scope: netlink.SCOPE_LINK}, network)
	a := newStation(t, open(t, hosts.A))
	expect := func(when string, neighbours, requested int) {
		t.Helper()
		if n, g := silentEntries(t, hosts.A, network), silentEntries(t, hosts.A, groups); n != neighbours || g != requested {
			t.Errorf("%s: got %d entries of neighbours and %d of groups, want %d and %d", when, n, g, neighbours, requested)
		}
	}
	connect := func() (*Session, provider.Handle) {
		session, err := a.device.NewSession(SessionConfig{Quota: quota.New("eve", Limits{}, nil)})
		check(t, err)
		pd, err := provider.Do(session, provider.AllocPD, provider.None{})
		check(t, err)
		return session, pd.PD
	}
	for round := range 5 {
		session, pd := connect()
		for i := range quota.MostUnresolved {
			check(t, a.quietly(session, pd, fmt.Sprintf("fd88::ab:%x", round*quota.MostUnresolved+i+1)))
		}
		refused(t, a.quietly(session, pd, "fd88::ab:ffff"), verbs.ErrLimit, "eve has 64")
		expect(fmt.Sprint("round ", round), quota.MostUnresolved, quota.MostUnresolved)
		check(t, session.Close())
		expect(fmt.Sprint("after round ", round), 0, 0)
	}
	first, pd := connect()
	check(t, a.quietly(first, pd, "fd88::1:ab:1"))
	second, pd := connect()
	check(t, a.quietly(second, pd, "fd88::2:ab:1"))
	expect("a shared group", 2, 1)
	check(t, first.Close())
	expect("a shared group of one", 1, 1)
	check(t, second.Close())
	expect("at the end", 0, 0)
}

// TestNeighboursOfAllUsers: the number of kernel entries for the cards of a process is limited; several users together
// reach the limit.
func TestNeighboursOfAllUsers(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	const network, most = "10.88.0.0/16", 40
	addRoute(t, hosts.A, netlink.Route{Scope: netlink.SCOPE_LINK}, network)
	limit := func(o *options) { o.neighbours = quota.NewNeighbours(func(bool) uint64 { return most }) }
	a := newStation(t, open(t, hosts.A, limit))
	made, last := 0, error(nil)
	for user := range most {
		session, err := a.device.NewSession(SessionConfig{Quota: quota.New(fmt.Sprint("user", user), Limits{}, nil)})
		check(t, err)
		pd, err := provider.Do(session, provider.AllocPD, provider.None{})
		check(t, err)
		for range 10 {
			if last = a.quietly(session, pd.PD, silentNetworks[network](made)); last == nil {
				made++
			}
		}
	}
	refused(t, last, verbs.ErrLimit, "40 of 40", "net.ipv4.neigh.default.gc_thresh3")
	if n := silentEntries(t, hosts.A, network); made != most || n != most {
		t.Errorf("got %d handles, %d entries", made, n)
	}
}

// TestForgedRequestsAndNeighbours: requests with forged senders, to which the connection manager replies, leave 64
// entries in the kernel's table, while an honest peer is served.
func TestForgedRequestsAndNeighbours(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	const network, forged = "10.88.0.0/16", 400
	addRoute(t, hosts.B, netlink.Route{Scope: netlink.SCOPE_LINK}, network)
	l := newStationsOn(t, hosts)
	l.b.listen(77)
	r := newRawSender(t, l.A, l.B, wire.QPNGSI)
	id, most := newCMID(), 0
	received := func() uint64 { return l.b.device.manager.Counters()[cm.Requests] }
	for i := range forged {
		f, sender := wire.SIDRReq{ServiceID: testService, RequestID: uint32(i), PKey: wire.PKeyDefault}, silentNetworks[network](i)
		header := wire.CMAddress{Source: netip.AddrPortFrom(address(sender), 1), Destination: address("10.77.0.2")}
		header.Put(f.PrivateData[:])
		req := make(wire.MAD, wire.MADLen)
		req.PutSIDRReq(uint64(i), &f)
		r.send(frame(r.path(sender, "10.77.0.2"), wire.Datagram{DestQP: wire.QPNGSI, SourceQP: wire.QPNGSI, QKey: wire.QKeyGSI, PKey: wire.PKeyDefault}, req))
		if i%20 != 19 {
			continue
		}
		if i == forged/2-1 {
			l.a.ask("10.77.0.1", "10.77.0.2", uint64(i), id)
			answered(t, id.next(t), 77, uint64(i))
		}
		eventually(t, "the requests", func() bool { return received() >= uint64(i+1) })
		most = max(most, silentEntries(t, l.B, network))
	}
	if most == 0 || most > quota.MostUnresolved {
		t.Errorf("got %d entries", most)
	}
	l.b.device.manager.Serving(func(q *ids.QP1) {
		for _, h := range q.Handles {
			h.Used = h.Used.Add(-ids.HandleIdle)
		}
	})
	l.b.device.manager.WakeUp()
	eventually(t, "the end of all entries", func() bool { return silentEntries(t, l.B, network) == 0 })
}
