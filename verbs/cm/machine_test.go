// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// newMachine returns the channels of two programs, each on a host of its own, on an in-memory network that stands for
// this machine.
func newMachine(t *testing.T) (server, client *cm.EventChannel) {
	t.Helper()
	n := newNetwork(t)
	n.OneMachine()
	return newChannel(t, device(t, n, "a", "10.88.0.1", "fd88::1")), newChannel(t, device(t, n, "b", "10.88.0.2", "fd88::2"))
}

// listening returns an id that listens at an address.
func listening(t *testing.T, c *cm.EventChannel, address string) *cm.ID {
	t.Helper()
	id := newID(t, c)
	check(t, id.Bind(addr(address)))
	check(t, id.Listen(0))
	return id
}

// resolveTo returns an id with a path to an address.
func resolveTo(t *testing.T, c *cm.EventChannel, address string) *cm.ID {
	t.Helper()
	id := newID(t, c)
	check(t, id.ResolveAddr(netip.AddrPort{}, addr(address), waittest.Limit))
	expect(t, c, cm.EventAddrResolved)
	check(t, id.ResolveRoute())
	expect(t, c, cm.EventRouteResolved)
	return id
}

// meets connects an id, and checks that the server gets the request, that its answer arrives, and that both know an
// address at which they reach each other.
func meets(t *testing.T, server, client *cm.EventChannel, id *cm.ID) {
	t.Helper()
	check(t, id.Connect(nil))
	asked := expect(t, server, cm.EventConnectRequest)
	check(t, asked.ID.Accept(&cm.ConnParam{QPN: 17}))
	if answer := expect(t, client, cm.EventEstablished); answer.QPN != 17 {
		t.Errorf("%+v", answer)
	}
	own, err := id.LocalAddr()
	check(t, err)
	if peer, err := asked.ID.PeerAddr(); err != nil || peer != own {
		t.Errorf("the server knows its client as %v, %v; the client is %v", peer, err, own)
	}
	check(t, asked.ID.Close())
}

// ownAddress returns an address of this machine of an IP version, or else a loopback address.
func ownAddress(t *testing.T, v4 bool) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	check(t, err)
	for _, one := range all {
		if a := netip.MustParsePrefix(one.String()).Addr(); a.Is4() == v4 && a.IsGlobalUnicast() {
			return a
		}
	}
	return map[bool]netip.Addr{true: netip.MustParseAddr("127.0.0.1"), false: netip.IPv6Loopback()}[v4]
}

// Programs of one machine meet by its addresses, loopback addresses included, as programs on a host with an RDMA
// device do.
func TestProgramsMeetByLocalhost(t *testing.T) {
	own4, own6 := fmt.Sprintf("%v:7001", ownAddress(t, true)), fmt.Sprintf("[%v]:7001", ownAddress(t, false))
	for _, row := range []struct{ at, to string }{
		{"0.0.0.0:7001", "127.0.0.1:7001"}, {"127.0.0.1:7001", "127.0.0.1:7001"}, {"[::]:7001", "[::1]:7001"}, {"[::]:7001", "127.0.0.1:7001"},
		{"[::1]:7001", "[::1]:7001"},
		{"0.0.0.0:7001", own4}, {own4, own4}, {own4, "127.0.0.1:7001"}, {"127.0.0.1:7001", own4}, {"[::]:7001", own6}, {own6, own6},
		{"0.0.0.0:7001", "0.0.0.0:7001"}, {"127.0.0.1:7001", "0.0.0.0:7001"}, {"[::]:7001", "[::]:7001"},
		{"127.0.0.2:7001", "127.0.0.1:7001"},
		{"127.0.0.1:7001", "10.88.0.1:7001"}, {own6, "[fd88::1]:7001"}, {"10.88.0.1:7001", "10.88.0.1:7001"},
	} {
		t.Run(row.at+" "+row.to, func(t *testing.T) {
			server, client := newMachine(t)
			listening(t, server, row.at)
			meets(t, server, client, resolveTo(t, client, row.to))
		})
	}
}

// A program that listens only after its address was resolved is reached too. The program's own host comes first.
func TestProgramsMeetLate(t *testing.T) {
	server, client := newMachine(t)
	id := resolveTo(t, client, "127.0.0.1:7001")
	listening(t, server, "127.0.0.1:7001")
	meets(t, server, client, id)

	id = resolveTo(t, client, "127.0.0.1:7002")
	listening(t, client, "10.88.0.2:7002") // which a loopback address does not name
	check(t, id.Connect(nil))
	if answer := expect(t, client, cm.EventUnreachable); answer.Status == 0 {
		t.Errorf("%+v", answer)
	}
	server, client = newMachine(t)
	listening(t, server, "10.88.0.1:7003")
	listening(t, client, "127.0.0.1:7003")
	meets(t, client, client, resolveTo(t, client, "127.0.0.1:7003"))
}

// An address of a host is that host's, even if an interface of the machine has it too.
func TestHostHasTheMachinesAddress(t *testing.T) {
	own := ownAddress(t, true)
	if own.IsLoopback() {
		return // no host can have it
	}
	n := newNetwork(t)
	n.OneMachine()
	at := netip.AddrPortFrom(own, 7001).String()
	server, client := newChannel(t, device(t, n, "a", own.String())), newChannel(t, device(t, n, "b", "10.88.0.2"))
	listening(t, server, at)
	meets(t, server, client, resolveTo(t, client, at))
}

// A program that is reached by an address of the machine on its own host knows its peer by an address of that host.
func TestProgramMeetsItself(t *testing.T) {
	for _, to := range []netip.Addr{ownAddress(t, true), ownAddress(t, false), netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()} {
		_, c := newMachine(t)
		listening(t, c, "[::]:7001")
		meets(t, c, c, resolveTo(t, c, netip.AddrPortFrom(to, 7001).String()))
	}
}

// Without an address of an IP version, a host is not reached by the machine's addresses of that version.
func TestMachineWithoutIPv4(t *testing.T) {
	n := newNetwork(t)
	n.OneMachine()
	server, client := newChannel(t, device(t, n, "a", "fd88::1")), newChannel(t, device(t, n, "b", "fd88::2"))
	listening(t, server, "[::]:7001")
	meets(t, server, client, resolveTo(t, client, "[::1]:7001"))
	id := resolveTo(t, client, "127.0.0.1:7001")
	check(t, id.Connect(nil))
	if answer := expect(t, client, cm.EventUnreachable); answer.Status == 0 {
		t.Errorf("%+v", answer)
	}
}

// Programs of one machine share its ports. Without OneMachine each host is a machine.
func TestPortsOfAMachine(t *testing.T) {
	server, client := newMachine(t)
	listening(t, server, "127.0.0.1:7001")
	refused(t, newID(t, client).Bind(addr("127.0.0.1:7001")), unix.EADDRINUSE)
	refused(t, newID(t, client).Bind(addr("0.0.0.0:7001")), unix.EADDRNOTAVAIL)
	refused(t, newID(t, client).Bind(addr("127.0.0.2:7001")), unix.EADDRINUSE)                        // which leads to the same listener
	refused(t, newID(t, client).Bind(netip.AddrPortFrom(ownAddress(t, true), 7001)), unix.EADDRINUSE) // and so does this
	refused(t, newID(t, server).Bind(addr("10.88.0.1:7001")), unix.EADDRINUSE)                        // to which its requests come
	listening(t, client, "10.88.0.2:7001")
	listening(t, client, "[::1]:7001")
	listening(t, server, "10.88.0.1:7002")
	refused(t, newID(t, server).Bind(addr("127.0.0.1:7002")), unix.EADDRINUSE)

	n := newNetwork(t)
	a, b := newChannel(t, device(t, n, "a", "10.0.0.1")), newChannel(t, device(t, n, "b", "10.0.0.2"))
	listening(t, a, "0.0.0.0:7001")
	id := resolveTo(t, b, "127.0.0.1:7001")
	check(t, id.Connect(nil))
	if answer := expect(t, b, cm.EventUnreachable); answer.Status == 0 {
		t.Errorf("%+v", answer)
	}
	listening(t, b, "0.0.0.0:7001")
	if own := ownAddress(t, true); !own.IsLoopback() {
		refused(t, newID(t, b).Bind(netip.AddrPortFrom(own, 7001)), verbs.ErrAddrNotAvail)
	}
}
