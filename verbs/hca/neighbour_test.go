// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// entry returns a host's neighbour entry, or nil.
func entry(t testing.TB, host *lab.Namespace, ip string) *netlink.Neigh {
	t.Helper()
	list, err := host.Netlink().NeighList(eth0(t, host).Attrs().Index, netlink.FAMILY_ALL)
	check(t, err)
	for i := range list {
		if list[i].IP.Equal(net.ParseIP(ip)) {
			return &list[i]
		}
	}
	return nil
}

func managed(t testing.TB, host *lab.Namespace, ip string) bool {
	t.Helper()
	n := entry(t, host, ip)
	return n != nil && n.FlagsExt&netlink.NTF_EXT_MANAGED != 0
}

func setEntry(t testing.TB, host *lab.Namespace, ip string, mac net.HardwareAddr, state int) {
	t.Helper()
	check(t, host.Netlink().NeighSet(&netlink.Neigh{
		LinkIndex: eth0(t, host).Attrs().Index, IP: net.ParseIP(ip), HardwareAddr: mac, State: state,
	}))
}

func delEntry(t testing.TB, host *lab.Namespace, ip string) {
	t.Helper()
	check(t, host.Netlink().NeighDel(&netlink.Neigh{LinkIndex: eth0(t, host).Attrs().Index, IP: net.ParseIP(ip)}))
}

// The kernel keeps a neighbour fresh while a handle leads to it, and a few seconds longer.
func TestNeighbourIsManaged(t *testing.T) {
	t.Parallel()
	for _, ip := range []string{"10.77.0.2", "fd77::2"} {
		t.Run(ip, func(t *testing.T) {
			l := newStations(t)
			first, second := l.a.ah(ip), l.a.ah(ip)
			if !managed(t, l.A, ip) {
				t.Error("not managed while handles use it")
			}
			check(t, first.Close())
			if !managed(t, l.A, ip) {
				t.Error("not managed while one handle uses it")
			}
			check(t, second.Close())
			eventually(t, "the end of it, when the path has lingered", func() bool { return !managed(t, l.A, ip) })
			l.a.ah(ip)
			check(t, l.a.device.Close())
			if managed(t, l.A, ip) {
				t.Error("still managed after the device was closed")
			}
		})
	}
}

// Entries made by the administrator stay unchanged.
func TestPermanentNeighbour(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	mac := eth0(t, hosts.B).Attrs().HardwareAddr
	setEntry(t, hosts.A, "10.77.0.2", mac, netlink.NUD_PERMANENT)
	permanent := func() {
		t.Helper()
		n := entry(t, hosts.A, "10.77.0.2")
		if n == nil || n.State != netlink.NUD_PERMANENT || n.FlagsExt != 0 || n.HardwareAddr.String() != mac.String() {
			t.Errorf("entry %+v", n)
		}
	}
	l := newStationsOn(t, hosts)
	ah := l.a.ah("10.77.0.2")
	permanent()
	message(t, l.a, l.b, ah, []byte("over a permanent entry"))
	check(t, ah.Close())
	permanent()
	l.a.ah("10.77.0.2")
	check(t, l.a.device.Close())
	permanent()
}

// Packets follow a neighbour that moves, also one that was made permanent while a handle leads to it.
func TestNeighbourMoves(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	a := newStation(t, open(t, hosts.A))
	s := newSniffer(t, hosts.B)
	peer := &station{TB: t, qp: a.qp}
	for _, ip := range []string{"10.77.0.2", "fd77::2"} {
		wr := a.send(1, a.ah(ip), peer)
		for i, state := range []int{netlink.NUD_REACHABLE, netlink.NUD_STALE, netlink.NUD_PERMANENT} {
			mac := wire.MAC{2, 0, 0, 0, 1, byte(i)}
			setEntry(t, hosts.A, ip, mac[:], state)
			eventually(t, "packets to the new address", func() bool {
				a.post(wr)
				a.wait(1)
				return s.destMAC() == mac
			})
		}
	}
}

// Packets to a failed neighbour are dropped and counted; when it is back packets flow again.
func TestNeighbourFailsAndReturns(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	setNeighbourTimers(t, hosts.A)
	l := newStationsOn(t, hosts)
	ah := l.a.ah("10.77.0.2")
	message(t, l.a, l.b, ah, []byte("before"))
	check(t, hosts.B.Netlink().LinkSetARPOff(eth0(t, hosts.B)))
	delEntry(t, hosts.A, "10.77.0.2")
	eventually(t, "drops", func() bool {
		l.a.post(l.a.send(1, ah, l.b))
		expect(t, l.a.wait(1), ok(1)) // the send completes successfully, as on any wire
		return l.a.drops()["unreachable"] > 0
	})
	check(t, hosts.B.Netlink().LinkSetARPOn(eth0(t, hosts.B)))
	flows(t, l, ah)
}

// flows waits until messages arrive again. Earlier messages may arrive late, and have no immediate data.
func flows(t *testing.T, l *stations, ah *verbs.AH) {
	t.Helper()
	arrived := false
	defer func() {
		if !arrived {
			t.Logf("a: %v, paths %+v; b: %v", l.a.drops(), l.a.device.paths.List(), l.b.drops())
			t.Logf("neighbours of a: %s", neighbours(t, l.A))
		}
	}()
	wr := l.a.send(1, ah, l.b)
	wr.Opcode = verbs.WRSendWithImm
	l.b.receive(0)
	eventually(t, "messages", func() bool {
		l.a.post(wr)
		l.a.wait(1)
		var wcs [1]verbs.WC
		n, err := l.b.cq.Poll(wcs[:])
		check(t, err)
		if arrived = n == 1 && wcs[0].Flags&verbs.WCWithImm != 0; n == 1 && !arrived {
			l.b.receive(0)
		}
		return arrived
	})
}

// neighbours returns the entries of a host's neighbour table, as text.
func neighbours(t *testing.T, host *lab.Namespace) (text string) {
	t.Helper()
	list, err := host.Netlink().NeighList(eth0(t, host).Attrs().Index, netlink.FAMILY_ALL)
	check(t, err)
	for _, n := range list {
		text += fmt.Sprintf("%v state %#x flags %#x; ", n.IP, n.State, n.Flags)
	}
	return text
}

// Deleted entries are resolved again while they are in use.
func TestNeighbourIsFlushed(t *testing.T) {
	l := newStations(t)
	for _, ip := range []string{"10.77.0.2", "fd77::2"} {
		ah := l.a.ah(ip)
		for range 3 {
			delEntry(t, l.A, ip)
			eventually(t, "the entry", func() bool { return managed(t, l.A, ip) })
			flows(t, l, ah)
		}
	}
}

func addRoute(t testing.TB, host *lab.Namespace, r netlink.Route, dest string) {
	t.Helper()
	prefix := netip.MustParsePrefix(dest)
	r.Dst = &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
	if r.Type == 0 {
		r.LinkIndex = eth0(t, host).Attrs().Index
	}
	check(t, host.Netlink().RouteReplace(&r))
}

func routeVia(gateway string) netlink.Route { return netlink.Route{Gw: net.ParseIP(gateway)} }

// Behind a gateway, packets have the gateway's Ethernet address, and another gateway's when the route changes.
func TestGateway(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, row := range []struct{ network, dest, first, second string }{
		{"10.99.0.0/16", "10.99.0.1", "10.77.0.2", "10.77.0.3"},
		{"fd99::/64", "fd99::1", "fd77::2", "fd77::3"},
	} {
		t.Run(row.dest, func(t *testing.T) {
			other := wire.MAC{2, 0, 0, 0, 9, 9}
			setEntry(t, hosts.A, row.second, other[:], netlink.NUD_PERMANENT)
			addRoute(t, hosts.A, routeVia(row.first), row.network)
			d := open(t, hosts.A)
			a, s := newStation(t, d), newSniffer(t, hosts.B)
			wr := a.send(1, a.ah(row.dest), &station{qp: a.qp})
			a.post(wr)
			var b wire.MAC
			copy(b[:], eth0(t, hosts.B).Attrs().HardwareAddr)
			if got := s.destMAC(); got != b || !managed(t, hosts.A, row.first) {
				t.Errorf("packets go to %v, the gateway is %v", got, b)
			}
			a.wait(1)
			addRoute(t, hosts.A, routeVia(row.second), row.network)
			eventually(t, "packets to the other gateway", func() bool {
				a.post(wr)
				a.wait(1)
				return s.destMAC() == other
			})
			eventually(t, "the unused gateway to be unmanaged", func() bool { return !managed(t, hosts.A, row.first) })
			check(t, d.Close())
		})
	}
}

// Without a route its handles are unreachable; with the route back they work again.
func TestRouteGoesAndReturns(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	check(t, l.B.AddAddress("eth0", "10.99.0.1/32"))
	addRoute(t, l.A, routeVia("10.77.0.2"), "10.99.0.0/16")
	ah := l.a.ah("10.99.0.1")
	flows(t, l, ah)
	addRoute(t, l.A, netlink.Route{Type: unix.RTN_BLACKHOLE}, "10.99.0.0/16")
	eventually(t, "drops", func() bool {
		l.a.post(l.a.send(1, ah, l.b))
		l.a.wait(1)
		return l.a.drops()["unreachable"] > 0
	})
	addRoute(t, l.A, routeVia("10.77.0.2"), "10.99.0.0/16")
	flows(t, l, ah)
}

// Unreachable destinations, and the error for each.
func TestUnreachable(t *testing.T) {
	t.Parallel() // most of it waits for neighbours that do not respond
	hosts := labtest.Pair(t)
	addLink(t, hosts.A, netlink.NewVeth(attrs("eth1", 1500)), true)
	check(t, hosts.A.AddAddress("eth1", "10.88.0.1/24"))
	check(t, hosts.A.AddAddress("eth1", "fd88::1/64"))
	addRoute(t, hosts.A, netlink.Route{Type: unix.RTN_BLACKHOLE}, "10.66.0.0/16")
	addRoute(t, hosts.A, netlink.Route{Type: unix.RTN_UNREACHABLE}, "fd66::/64")
	addRoute(t, hosts.A, routeVia("10.77.0.88"), "10.55.0.0/16")
	s := newStation(t, open(t, hosts.A))
	rows := []struct {
		name, dest string
		says       []string
	}{
		{"neighbour does not answer", "10.77.0.99", []string{"10.77.0.99 does not answer on eth0", "same VLAN"}},
		{"neighbour does not answer over IPv6", "fd77::99", []string{"fd77::99 does not answer"}},
		{"the gateway does not answer", "10.55.0.1", []string{"10.77.0.88 does not answer", "the next hop to 10.55.0.1"}},
		{"no route", "192.0.2.1", []string{"no route to 192.0.2.1 from 10.77.0.1 through eth0", "ip route get"}},
		{"no IPv6 route", "fd99::1", []string{"no route to fd99::1"}},
		{"blackhole", "10.66.0.1", []string{"no route to 10.66.0.1"}},
		{"unreachable route", "fd66::1", []string{"no route to fd66::1"}},
		{"another device of this host", "10.88.0.1", []string{"address of this host, but not of eth0", "send from the device that has it"}},
		{"another device of this host, IPv6", "fd88::1", []string{"address of this host, but not of eth0"}},
		{"the network of another device", "10.88.0.7", []string{"no route to 10.88.0.7 from 10.77.0.1 through eth0"}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := s.pd.CreateAH(context.Background(), s.route(row.dest))
			refused(t, err, unix.EHOSTUNREACH, append(row.says, "create AH to")...)
			if managed(t, hosts.A, row.dest) {
				t.Error("the neighbour is still being resolved")
			}
		})
	}
}

// Closing the card ends the wait for a neighbour.
func TestCloseWhileResolving(t *testing.T) {
	hosts := labtest.Pair(t)
	s := newStation(t, open(t, hosts.A))
	route := s.route("10.77.0.99")
	done := make(chan error)
	go func() {
		_, err := s.pd.CreateAH(context.Background(), route)
		done <- err
	}()
	eventually(t, "the neighbour query", func() bool { return managed(t, hosts.A, "10.77.0.99") })
	check(t, s.device.Close())
	refused(t, <-done, verbs.ErrClosed)
	if managed(t, hosts.A, "10.77.0.99") {
		t.Error("the neighbour is still being resolved")
	}
}

// The PD of a handle in preparation is in use.
func TestClosePDWhileResolving(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	s := newStation(t, open(t, hosts.A))
	pd, err := s.ctx.AllocPD()
	check(t, err)
	route := s.route("10.77.0.99")
	done := make(chan error)
	go func() {
		_, err := pd.CreateAH(context.Background(), route)
		done <- err
	}()
	eventually(t, "the neighbour query", func() bool { return managed(t, hosts.A, "10.77.0.99") })
	refused(t, pd.Close(), unix.EBUSY)
	refused(t, <-done, unix.EHOSTUNREACH)
	check(t, pd.Close())
}
