// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// TestAnyPortNeedsNoPrivilege: port 0 does not count as a port below 1024.
func TestAnyPortNeedsNoPrivilege(t *testing.T) {
	w := newWirePair(t)
	c := idsOn(w.a.another(SessionConfig{Privileged: func() bool { return false }}))
	id := newID(t, c)
	refused(t, id.Bind(netip.AddrPortFrom(address("10.0.0.1"), 80)), unix.EACCES)
	check(t, id.Bind(netip.AddrPortFrom(address("10.0.0.1"), 0)))
	check(t, id.Close())
	check(t, c.Close())
}

// TestPortRules: the host determines the range of ephemeral ports, the privileged ports, and whether :: is IPv6 only.
func TestPortRules(t *testing.T) {
	n := newNetwork(t, 0)
	h, err := n.AddHost("a", addressesA...)
	check(t, err)
	ruled := &ruledHost{Host: h}
	card, err := New(ruled)
	check(t, err)
	t.Cleanup(func() { check(t, card.Close()) })
	on := func(rules network.PortRules, privileged bool) func(netip.AddrPort) (*cm.ID, error) {
		ruled.rules = rules
		session, err := card.NewSession(SessionConfig{BindService: func() bool { return privileged }})
		check(t, err)
		ctx, err := verbs.Open(session)
		check(t, err)
		t.Cleanup(func() { check(t, ctx.Close()) })
		channel, err := cm.CreateEventChannel(ctx)
		check(t, err)
		return func(to netip.AddrPort) (*cm.ID, error) {
			id, err := channel.CreateID(cm.PortSpaceUDP, nil)
			check(t, err)
			return id, id.Bind(to)
		}
	}
	own, all4, all6 := address("10.0.0.1"), netip.IPv4Unspecified(), netip.IPv6Unspecified()
	bind := on(network.PortRules{First: 100, Last: 102, Unprivileged: 80}, false)
	_, err = bind(netip.AddrPortFrom(own, 79))
	refused(t, err, unix.EACCES, "79", "below 80")
	_, err = bind(netip.AddrPortFrom(own, 80))
	check(t, err)
	given := map[uint16]bool{}
	for range 3 {
		id, err := bind(netip.AddrPortFrom(own, 0))
		check(t, err)
		at, err := id.LocalAddr()
		check(t, err)
		given[at.Port()] = true
	}
	if !given[100] || !given[101] || !given[102] {
		t.Errorf("got ephemeral ports %v", given)
	}
	_, err = bind(netip.AddrPortFrom(own, 0))
	refused(t, err, unix.EADDRNOTAVAIL, "all 3 ports")
	bind = on(network.PortRules{First: 1000, Last: 2000, Unprivileged: 1024, BindV6Only: true}, true)
	for _, to := range []netip.Addr{all6, all4} { // also in the other order
		_, err = bind(netip.AddrPortFrom(to, 79))
		check(t, err)
	}
}

// ruledHost is a host with its own port rules.
type ruledHost struct {
	*memnet.Host
	rules network.PortRules
}

func (h *ruledHost) PortRules() network.PortRules { return h.rules }

// TestPortRulesOfANamespace: the rules are the current ones of the card's namespace.
func TestPortRulesOfANamespace(t *testing.T) {
	t.Parallel()
	for _, way := range []Network{NetworkXDP, NetworkUDP} {
		hosts := labtest.Pair(t)
		card := open(t, hosts.A, WithNetwork(way), WithStateDir(t.TempDir()))
		channel := idsOn(newStation(t, card))
		check(t, hosts.A.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("5000 5001"), 0) }))
		id := newID(t, channel)
		check(t, id.Bind(netip.AddrPortFrom(address("10.77.0.1"), 0)))
		at, err := id.LocalAddr()
		check(t, err)
		if at.Port() != 5000 && at.Port() != 5001 {
			t.Errorf("over %v: port %d", way, at.Port())
		}
		check(t, id.Close())
	}
}

// TestServiceTypeIsAPriority: the type of service of an id determines a service level, by the interface's map, and a
// frame's VLAN priority is the service level.
func TestServiceTypeIsAPriority(t *testing.T) {
	n := newNetwork(t, 0)
	h, err := n.AddHost("a", addressesA...)
	check(t, err)
	card, err := New(&mappedHost{h})
	check(t, err)
	t.Cleanup(func() { check(t, card.Close()) })
	id := newID(t, idsOn(newStation(t, card)))
	check(t, id.SetServiceType(0x08)) // bulk
	check(t, id.ResolveAddr(netip.AddrPort{}, netip.AddrPortFrom(address("10.0.0.1"), 1), time.Minute))
	_, err = id.Channel().Expect(guard(t), cm.EventAddrResolved)
	check(t, err)
	if route, err := id.Route(); err != nil || route.SL != 5 || route.GRH.TrafficClass != 8 {
		t.Errorf("%+v, %v", route, err)
	}
	check(t, id.Close())
}

// mappedHost is a host whose interface has an egress map.
type mappedHost struct{ *memnet.Host }

func (h *mappedHost) Port() (network.Port, error) {
	p, err := h.Host.Port()
	p.Egress[2] = 5
	return p, err
}

// TestLeaveTheLastJoin: of two memberships of one group the last is left first.
func TestLeaveTheLastJoin(t *testing.T) {
	w := newWirePair(t)
	s := w.a.device.session
	channel, err := provider.Do(s, provider.CreateEventChannel, provider.None{})
	check(t, err)
	defer channel.Events.Close()
	made, err := provider.Do(s, provider.CreateID, provider.CreateIDRequest{Channel: channel.Channel, PortSpace: wire.PortSpaceUDP})
	check(t, err)
	_, err = provider.Do(s, provider.BindID, provider.BindIDRequest{ID: made.ID, Address: netip.AddrPortFrom(address("10.0.0.1"), 0)})
	check(t, err)
	group := address("239.1.2.3")
	for context := range uint64(2) {
		check(t, provider.Exec(s, provider.JoinID, provider.JoinIDRequest{ID: made.ID, Group: group, State: ib.JoinStateFullMember, Context: 5 + context}))
	}
	for _, want := range []uint64{6, 5} {
		grant, err := provider.Do(s, provider.LeaveID, provider.LeaveIDRequest{ID: made.ID, Group: group})
		check(t, err)
		if grant.Context != want {
			t.Errorf("left %d, want %d", grant.Context, want)
		}
	}
	check(t, provider.Exec(s, provider.DestroyID, provider.DestroyIDRequest{ID: made.ID}))
	check(t, provider.Exec(s, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: channel.Channel}))
}
