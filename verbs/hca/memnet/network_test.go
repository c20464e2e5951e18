// SPDX-License-Identifier: Apache-2.0

package memnet

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/verbs"
)

func address(s string) netip.Addr { return netip.MustParseAddr(s) }

func hostAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}) }

// newHosts creates a network of hosts, host1 (10.0.0.1) and so on, without cards.
func newHosts(t *testing.T, hosts int) (n *Network, list []*Host) {
	t.Helper()
	n = New(0)
	t.Cleanup(func() { check(t, n.Close()) })
	for i := range hosts {
		h, err := n.AddHost(fmt.Sprintf("host%d", i+1), hostAddress(i))
		check(t, err)
		list = append(list, h)
	}
	return n, list
}

var check, refused = errtest.Check, errtest.Refused

// TestHostsThatAreRefused: an invalid host is rejected with the remedy, and does not change the network. The name and
// addresses of a removed host can be used again.
func TestHostsThatAreRefused(t *testing.T) {
	n, hosts := newHosts(t, 2)
	free := address("10.0.0.50")
	for _, row := range []struct {
		name      string
		addresses []netip.Addr
		want      error
		says      string
	}{
		{"", []netip.Addr{free}, verbs.ErrInvalid, "no name"},
		{"host1", []netip.Addr{free}, verbs.ErrBusy, "choose another name"},
		{"new", []netip.Addr{free, {}}, verbs.ErrInvalid, "no address"},
		{"new", []netip.Addr{address("239.1.2.3")}, verbs.ErrInvalid, "a group's"},
		{"new", []netip.Addr{address("ff02::1")}, verbs.ErrInvalid, "a group's"},
		{"new", []netip.Addr{address("0.0.0.0")}, verbs.ErrInvalid, "unspecified"},
		{"new", []netip.Addr{address("::")}, verbs.ErrInvalid, "unspecified"},
		{"new", []netip.Addr{address("127.0.0.2")}, verbs.ErrInvalid, "loopback"},
		{"new", []netip.Addr{address("::1")}, verbs.ErrInvalid, "loopback"},
		{"new", []netip.Addr{address("255.255.255.255")}, verbs.ErrInvalid, "broadcast"},
		{"new", []netip.Addr{address("::ffff:10.0.0.1")}, verbs.ErrInvalid, "Unmap"},
		{"new", []netip.Addr{address("fe80::1%eth0")}, verbs.ErrInvalid, "WithZone"},
		{"new", []netip.Addr{free, free}, verbs.ErrInvalid, "duplicate"},
		{"new", []netip.Addr{free, hostAddress(1)}, verbs.ErrBusy, "host2 has 10.0.0.2"},
	} {
		_, err := n.AddHost(row.name, row.addresses...)
		refused(t, err, row.want, row.says)
		if row.name == "new" {
			refused(t, hosts[0].SetAddresses(row.addresses...), row.want, row.says, "set addresses of host1")
		}
	}
	if got := hosts[0].now().Addresses; len(got) != 1 || got[0] != hostAddress(0) {
		t.Errorf("got addresses %v after refused changes", got)
	}
	check(t, hosts[0].SetAddresses(hostAddress(0), free)) // the host already has the first address
	check(t, hosts[1].Close())
	refused(t, hosts[1].SetAddresses(address("10.0.0.51")), verbs.ErrClosed, "left the in-memory network")
	refused(t, hosts[1].SetMTU(1500), verbs.ErrClosed, "set MTU of ", "left the in-memory network")
	_, err := n.AddHost("host2", hostAddress(1))
	check(t, err)
	check(t, n.Close())
	_, err = n.AddHost("late", address("10.0.0.52"))
	refused(t, err, verbs.ErrClosed, "create a new one")
}

func TestImpairmentsThatAreRefused(t *testing.T) {
	n, _ := newHosts(t, 1)
	for _, i := range []Impairment{
		{Loss: -0.1}, {Loss: 1.1}, {Loss: math.NaN()}, {Duplication: -1}, {Duplication: 2}, {Duplication: math.NaN()},
	} {
		refused(t, n.Impair(i), verbs.ErrInvalid, "between 0 and 1")
	}
	for _, i := range []Impairment{{Delay: -1}, {Jitter: -time.Second}} {
		refused(t, n.Impair(i), verbs.ErrInvalid, "must not be negative")
	}
	check(t, n.Impair(Impairment{Loss: 1, Duplication: 1, Delay: 1, Jitter: 1}))
	check(t, n.Impair(Impairment{}))
}

// TestClosedNetwork: a closed network accepts no changes.
func TestClosedNetwork(t *testing.T) {
	n, hosts := newHosts(t, 1)
	h := hosts[0]
	check(t, n.Close())
	_, again := n.AddHost("host2", hostAddress(1))
	for _, err := range []error{again, n.Impair(Impairment{Loss: 1}), h.SetMTU(1500), h.SetAddresses()} {
		refused(t, err, verbs.ErrClosed)
	}
	h.SetUp(true) // without effect
}
