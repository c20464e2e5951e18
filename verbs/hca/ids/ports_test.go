// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/quota"
	"golang.org/x/sys/unix"
)

// TestBothVersionsOfAPort: two ids can have one port of 0.0.0.0 and of :: only if both are for their IP version only.
func TestBothVersionsOfAPort(t *testing.T) {
	for _, row := range []struct{ four, six, fits bool }{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}} {
		p := newPorts()
		key := portKey{wire.PortSpaceTCP, 2000}
		check(t, p.bind(&binding{portKey: key, address: netip.IPv4Unspecified(), afonly: row.four}))
		err := p.bind(&binding{portKey: key, address: netip.IPv6Unspecified(), afonly: row.six})
		if row.fits {
			check(t, err)
		} else {
			refused(t, err, unix.EADDRNOTAVAIL, "port 2000")
		}
	}
}

// TestSharedPort: the bindings of an id on several cards have one owner, that id, even if other ids of the user have
// the address.
func TestSharedPort(t *testing.T) {
	p := newPorts()
	of := func(whose uint64) *binding {
		return &binding{portKey: portKey{wire.PortSpaceTCP, 2000}, address: netip.IPv4Unspecified(), reuse: true, whose: whose}
	}
	one, two, further := of(1), of(2), of(2)
	check(t, p.bind(one))
	refused(t, p.share(further), unix.EADDRNOTAVAIL)
	check(t, p.bind(two))
	check(t, p.share(further))
	p.release(one)
	for _, b := range []*binding{two, further} {
		_, err := p.listen(b)
		check(t, err)
	}
}

// TestNarrowedPort: an id that was bound to all addresses, and is now bound to one, does not block the port at other
// addresses.
func TestNarrowedPort(t *testing.T) {
	p := newPorts()
	key := portKey{wire.PortSpaceTCP, 2000}
	one := &binding{portKey: key, address: netip.IPv4Unspecified()}
	check(t, p.bind(one))
	other := &binding{portKey: key, address: address("10.0.0.2")}
	refused(t, p.bind(other), unix.EADDRNOTAVAIL)
	p.narrow(one, address("10.0.0.1"))
	check(t, p.bind(other))
	refused(t, p.bind(&binding{portKey: key, address: address("10.0.0.1")}), unix.EADDRINUSE)
}

// TestPortsAreCounted: of 114 ephemeral ports a user with many ids gets 100, since the last eighth is for users with few.
// A released port does not count, and a port outside of the range never does.
func TestPortsAreCounted(t *testing.T) {
	p, greedy := newPorts(), quota.New("greedy", quota.Limits{}, nil)
	for range 100 {
		check(t, greedy.Take(quota.IDs, "id"))
	}
	rules := network.DefaultPortRules()
	rules.Last = rules.First + 113
	bind := func(user *quota.Quota, port uint16) (*binding, error) {
		b := &binding{portKey: portKey{wire.PortSpaceTCP, port}, address: netip.IPv4Unspecified(), user: user, rules: rules}
		return b, p.bind(b)
	}
	var last *binding
	for range 100 {
		var err error
		last, err = bind(greedy, 0)
		check(t, err)
	}
	_, err := bind(greedy, 0)
	refused(t, err, verbs.ErrLimit)
	free := rules.First
	for len(p.bound[portKey{wire.PortSpaceTCP, free}]) > 0 {
		free++
	}
	_, err = bind(greedy, free)
	refused(t, err, verbs.ErrLimit)
	_, err = bind(greedy, 2000)
	check(t, err)
	_, err = bind(nil, 0)
	check(t, err)
	p.release(last)
	one, err := bind(nil, last.port)
	check(t, err)
	p.release(one)
	if n := p.given[wire.PortSpaceTCP]; n != 100 || p.Len() != 101 {
		t.Errorf("got %d ephemeral ports in use, %d bound", n, p.Len())
	}
}

// TestPortsAreLeftForOthers: the last eighth of the ephemeral ports is reserved for users that have few.
func TestPortsAreLeftForOthers(t *testing.T) {
	p, greedy, late := newPorts(), quota.New("greedy", quota.Limits{}, nil), quota.New("late", quota.Limits{}, nil)
	bind := func(user *quota.Quota) error {
		return p.bind(&binding{portKey: portKey{space: wire.PortSpaceTCP}, address: netip.IPv4Unspecified(), user: user, rules: network.DefaultPortRules()})
	}
	var err error
	for err == nil {
		check(t, greedy.Take(quota.IDs, "id"))
		err = bind(greedy)
	}
	refused(t, err, verbs.ErrLimit, "ports that are given out", "24703 of 28232")
	check(t, bind(late))
}

// TestUndoneListen: a binding whose id does not listen after all attracts no requests, and may be reused as before.
func TestUndoneListen(t *testing.T) {
	p, card := newPorts(), new(around)
	b := &binding{portKey: portKey{wire.PortSpaceTCP, 2000}, address: netip.IPv4Unspecified(), card: card, reuse: true}
	check(t, p.bind(b))
	undo, err := p.listen(b)
	check(t, err)
	to := netip.AddrPortFrom(address("127.0.0.1"), 2000)
	if p.listener(b.space, to, card) != card || b.reuse {
		t.Errorf("%+v does not listen", b)
	}
	undo()
	if p.listener(b.space, to, card) != nil || !b.reuse {
		t.Errorf("%+v listens still", b)
	}
}
