// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// hasGID reports whether a station's GID table has an address.
func hasGID(s *station, a string) bool {
	gids, err := s.ctx.QueryGIDTable(1)
	check(s, err)
	for _, entry := range gids {
		if entry.GID == gid(a) {
			return true
		}
	}
	return false
}

func (s *station) port() verbs.PortAttr {
	s.Helper()
	port, err := s.ctx.QueryPort(1)
	check(s, err)
	return port
}

// An address added to the interface becomes a GID and is steered; a removed one is neither.
func TestAddressesAreFollowed(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	for _, row := range []struct{ address, cidr string }{{"10.77.0.5", "10.77.0.5/24"}, {"fd77::5", "fd77::5/64"}} {
		t.Run(row.address, func(t *testing.T) {
			if hasGID(l.b, row.address) {
				t.Fatal("the GID exists already")
			}
			check(t, l.B.AddAddress("eth0", row.cidr))
			eventually(t, "the GID", func() bool { return hasGID(l.b, row.address) })
			ah := l.a.ah(row.address)
			message(t, l.a, l.b, ah, []byte("to a new address"))

			// Its own packets, reflected, are dropped from now on.
			r := newRawSender(t, l.A, l.B, l.b.qp.Number())
			before := counts(t, l.b.device)
			r.send(frame(r.path(row.address, row.address), r.datagram(), nil))
			eventually(t, "a drop", func() bool {
				return counts(t, l.b.device)["drop_own_source"] == before["drop_own_source"]+1
			})

			delAddress(t, l.B, row.cidr)
			eventually(t, "the end of the GID", func() bool { return !hasGID(l.b, row.address) })
			// XDP is updated after the GID table. The packet to another address shows the counters; it is dropped, and
			// all are dropped before the next row posts a receive.
			before, sent := counts(t, l.b.device), uint64(0)
			eventually(t, "a pass", func() bool {
				r.send(frame(r.path("10.77.0.1", "10.77.0.2"), r.datagram(), nil))
				r.send(frame(r.path(row.address, row.address), r.datagram(), nil))
				sent++
				return counts(t, l.b.device)["pass_not_own"] > before["pass_not_own"]
			})
			eventually(t, "the drops", func() bool {
				return counts(t, l.b.device)["no_receive"] == before["no_receive"]+sent
			})
			check(t, ah.Close())
		})
	}
}

// A removed default is replaced by a routable address, and never by a link-local one while there is another.
func TestDefaultGID(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	first := func() verbs.GID {
		entry, err := l.b.ctx.QueryGID(1, 0)
		check(t, err)
		return entry.GID
	}
	steps := []struct {
		change func()
		want   string
	}{
		{func() {}, "10.77.0.2"},
		{func() { delAddress(t, l.B, "10.77.0.2/24") }, "fd77::2"},
		{func() { delAddress(t, l.B, "fd77::2/64") }, linkLocal(t, l.B)},
		{func() { check(t, l.B.AddAddress("eth0", "10.77.0.9/24")) }, "10.77.0.9"},
	}
	for _, step := range steps {
		step.change()
		eventually(t, "default "+step.want, func() bool { return first() == gid(step.want) })
	}
}

// A handle to an address that moves to this device delivers here; a handle from a removed address drops its packets
// until the address is back.
func TestHandlesFollowAddresses(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	check(t, l.B.AddAddress("eth0", "10.77.0.5/24"))
	eventually(t, "the GID", func() bool { return hasGID(l.b, "10.77.0.5") })
	moving := l.a.ah("10.77.0.5")
	message(t, l.a, l.b, moving, []byte("over there"))
	delAddress(t, l.B, "10.77.0.5/24")
	check(t, l.A.AddAddress("eth0", "10.77.0.5/24"))
	eventually(t, "the GID", func() bool { return hasGID(l.a, "10.77.0.5") })
	eventually(t, "loopback", func() bool { // the handle follows soon after the GID
		l.a.post(l.a.send(1, moving, l.a))
		expect(t, l.a.wait(1), ok(1))
		return l.a.device.engine.Counters().Loopback > 0
	})
	l.a.receive(0)
	l.a.post(l.a.send(1, moving, l.a))
	expect(t, l.a.wait(2), ok(0), ok(1))

	ah := l.a.ah("10.77.0.2")
	delAddress(t, l.A, "10.77.0.1/24")
	eventually(t, "drops", func() bool {
		l.a.post(l.a.send(1, ah, l.b))
		l.a.wait(1)
		return l.a.drops()["unreachable"] > 0
	})
	check(t, l.A.AddAddress("eth0", "10.77.0.1/24"))
	flows(t, l, ah)
}

// The port's state follows the link. Messages sent meanwhile are dropped and counted, and everything works again
// afterwards: handles, addresses, steering.
func TestLinkDownAndUp(t *testing.T) {
	t.Parallel()
	rows := map[string]func(l *stations) *lab.Namespace{
		"its own end":     func(l *stations) *lab.Namespace { return l.A },
		"the other's end": func(l *stations) *lab.Namespace { return l.B },
	}
	for name, side := range rows {
		t.Run(name, func(t *testing.T) {
			l := newStations(t)
			setNeighbourTimers(t, l.A)
			v4, v6 := l.a.ah("10.77.0.2"), l.a.ah("fd77::2")
			message(t, l.a, l.b, v4, []byte("before"))
			for range 2 {
				host := side(l)
				check(t, host.Netlink().LinkSetDown(eth0(t, host)))
				eventually(t, "PORT_DOWN", func() bool { return l.a.port().State == verbs.PortDown })
				dropsWhileDown(t, l, v4)
				asleep(t, l.a.device)
				check(t, host.Netlink().LinkSetUp(eth0(t, host)))
				eventually(t, "PORT_ACTIVE", func() bool { return l.a.port().State == verbs.PortActive })
				flows(t, l, v4)
				restoreIPv6(t, l)
				flows(t, l, v6)
			}
		})
	}
}

// restoreIPv6 restores the addresses that the kernel removes when a link goes down.
func restoreIPv6(t *testing.T, l *stations) {
	t.Helper()
	for host, cidr := range map[*lab.Namespace]string{l.A: "fd77::1/64", l.B: "fd77::2/64"} {
		if err := host.AddAddress("eth0", cidr); err != nil {
			refused(t, err, unix.EEXIST)
		}
	}
}

// Frames queued for a link that went down do not keep the worker awake.
func TestDownWithFramesUnderway(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	ah := l.a.ah("10.77.0.2")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var wcs [depth]verbs.WC
		for {
			select {
			case <-stop:
				return
			default:
				for range depth {
					_ = l.a.qp.PostSend([]verbs.SendWR{l.a.send(1, ah, l.b)})
				}
				_, _ = l.a.cq.Poll(wcs[:])
				time.Sleep(flowPause)
			}
		}
	}()
	for range 5 {
		check(t, l.A.Netlink().LinkSetDown(eth0(t, l.A)))
		eventually(t, "drops", func() bool { return l.a.port().State == verbs.PortDown && l.a.drops()["link_down"] > 0 })
		check(t, l.A.Netlink().LinkSetUp(eth0(t, l.A)))
		eventually(t, "PORT_ACTIVE", func() bool { return l.a.port().State == verbs.PortActive })
	}
	check(t, l.A.Netlink().LinkSetDown(eth0(t, l.A)))
	eventually(t, "PORT_DOWN", func() bool { return l.a.port().State == verbs.PortDown })
	close(stop)
	<-done
	asleep(t, l.a.device)
}

// The active MTU follows the interface's. An MTU that is too small for any RDMA MTU takes the port down until it is
// raised.
func TestMTUIsFollowed(t *testing.T) {
	t.Parallel()
	var log logged
	l := newStations(t, log.option())
	set := func(mtu int) {
		check(t, l.A.Netlink().LinkSetMTU(eth0(t, l.A), mtu))
		check(t, l.B.Netlink().LinkSetMTU(eth0(t, l.B), mtu))
	}
	ah := l.a.ah("10.77.0.2")
	for _, row := range []struct{ link, rdma int }{{1400, 1024}, {700, 512}, {400, 256}, {1500, 1024}, {3000, 2048}} {
		set(row.link)
		for _, s := range []*station{l.a, l.b} {
			eventually(t, "the MTU", func() bool { return s.port().InterfaceMTU == row.link && s.port().ActiveMTU.Bytes() == row.rdma })
		}
		message(t, l.a, l.b, ah, pattern(row.rdma, 3))
	}
	set(300)
	eventually(t, "PORT_DOWN", func() bool { return l.a.port().State == verbs.PortDown && log.says("too small for any RDMA MTU") })
	l.a.post(l.a.send(1, ah, l.b))
	expect(t, l.a.wait(1), ok(1))
	if l.a.drops()["link_down"] != 1 {
		t.Errorf("drops %v", l.a.drops())
	}
	set(1500)
	eventually(t, "PORT_ACTIVE", func() bool { return l.a.port().State == verbs.PortActive && l.b.port().State == verbs.PortActive })
	flows(t, l, ah)
}

// Notifications about other interfaces, more than are read, do no harm.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	ah := l.a.ah("10.77.0.2")
	for i := range 300 {
		addRoute(t, l.A, routeVia("10.77.0.2"), (&net.IPNet{IP: net.IPv4(10, 200, byte(i), 0), Mask: net.CIDRMask(24, 32)}).String())
	}
	check(t, l.A.AddAddress("eth0", "10.77.0.5/24"))
	eventually(t, "the last change", func() bool { return hasGID(l.a, "10.77.0.5") })
	flows(t, l, ah)
}

// When the Ethernet address of the card's own interface changes, packets carry the new one.
func TestOwnMACChanges(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	a := newStation(t, open(t, hosts.A))
	s := newSniffer(t, hosts.B)
	wr := a.send(1, a.ah("10.77.0.2"), &station{qp: a.qp})
	mac := setMAC(t, hosts.A, 77)
	eventually(t, "packets from the new address", func() bool {
		a.post(wr)
		a.wait(1)
		_, p := s.next()
		return p.SourceMAC().String() == mac.String()
	})
}

// awaitEvent reads events until the wanted one.
func (s *station) awaitEvent(want verbs.AsyncEvent) {
	s.Helper()
	for s.event() != want {
	}
}

// Changes of the host cause events: of the link, whichever end goes down, and of addresses.
func TestHostsChangesAreEvents(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	l.a.noEvent()
	for _, host := range []*lab.Namespace{l.A, l.B} {
		check(t, host.Netlink().LinkSetDown(eth0(t, host)))
		l.a.awaitEvent(portErr)
		l.b.awaitEvent(portErr)
		check(t, host.Netlink().LinkSetUp(eth0(t, host)))
		l.a.awaitEvent(portActive)
		l.b.awaitEvent(portActive)
	}
	check(t, l.A.AddAddress("eth0", "10.77.0.5/24"))
	l.a.awaitGIDs(func() bool { return hasGID(l.a, "10.77.0.5") })
	delAddress(t, l.A, "10.77.0.5/24")
	l.a.awaitGIDs(func() bool { return !hasGID(l.a, "10.77.0.5") })
}

// awaitGIDs reads events until the GID table has the wanted state: the last event comes after that. Earlier ones may
// concern the link-local address, which is removed and added with the link.
func (s *station) awaitGIDs(are func() bool) {
	s.Helper()
	s.awaitEvent(gidChange)
	for !are() {
		s.awaitEvent(gidChange)
	}
}

// A group's address is not in the GID table, so a join causes no event.
func TestJoinIsNoEvent(t *testing.T) {
	t.Parallel()
	l := newStations(t, WithStateDir(t.TempDir()))
	for _, group := range []string{groupV4, groupV6} {
		check(t, join(t, l.a, group, verbs.JoinFullMember).Close())
		join(t, l.a, group, verbs.JoinFullMember)
	}
	check(t, l.A.Netlink().LinkSetMTU(eth0(t, l.A), 1400)) // changes come in order
	eventually(t, "the MTU", func() bool { return l.a.port().InterfaceMTU == 1400 })
	l.a.noEvent()
}

// dropsWhileDown: messages sent while the link is down are completed, and counted.
func dropsWhileDown(t *testing.T, l *stations, ah *verbs.AH) {
	t.Helper()
	before := l.a.drops()["link_down"]
	for range 5 {
		l.a.post(l.a.send(1, ah, l.b))
		expect(t, l.a.wait(1), ok(1))
	}
	if n := l.a.drops()["link_down"] - before; n != 5 {
		t.Errorf("counted %d drops, want 5; %v", n, l.a.drops())
	}
}
