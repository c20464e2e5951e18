// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// askOnlyOnce makes a host's kernel repeat a neighbour query only after minutes: a reply within a test's waitTimeout
// answers the first query.
func askOnlyOnce(t testing.TB, host *lab.Namespace) {
	t.Helper()
	check(t, host.Do(func() error {
		for _, family := range []string{"ipv4", "ipv6"} {
			if err := os.WriteFile(filepath.Join("/proc/sys/net", family, "neigh/eth0/retrans_time_ms"), []byte("600000"), 0o644); err != nil {
				return err
			}
		}
		return nil
	}))
}

// After a link flap the first neighbour query is answered: it is not sent while the link is down, where it would be
// lost.
func TestFlapAsksAtOnce(t *testing.T) {
	t.Parallel()
	for name, side := range map[string]func(l *stations) *lab.Namespace{
		"its own end":     func(l *stations) *lab.Namespace { return l.A },
		"the other's end": func(l *stations) *lab.Namespace { return l.B },
	} {
		t.Run(name, func(t *testing.T) {
			hosts := labtest.Pair(t)
			l := newStationsOn(t, hosts)
			ah := l.a.ah("10.77.0.2")
			message(t, l.a, l.b, ah, []byte("before"))
			askOnlyOnce(t, hosts.A)
			for range 3 {
				host := side(l)
				check(t, host.Netlink().LinkSetDown(eth0(t, host)))
				eventually(t, "PORT_DOWN", func() bool { return l.a.port().State == verbs.PortDown })
				// The neighbour is not resolved while the link is down.
				setMAC(t, hosts.B, 0x77)
				check(t, host.Netlink().LinkSetUp(eth0(t, host)))
				flows(t, l, ah)
				eventually(t, "the answer", func() bool {
					n := entry(t, hosts.A, "10.77.0.2")
					return n != nil && n.State&(netlink.NUD_REACHABLE|netlink.NUD_STALE|netlink.NUD_DELAY|netlink.NUD_PROBE) != 0
				})
			}
		})
	}
}

// A server's responses never wait: those to a peer that does not answer ARP are dropped and counted, while other peers
// get theirs.
func TestAnswersNeverWait(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	l := newStationsOn(t, hosts)
	l.a.receive(0)
	message(t, l.b, l.a, l.b.ah("10.77.0.1"), []byte("a question"))
	wc := verbs.WC{Flags: verbs.WCGRH}
	silent := verbs.GRH(make([]byte, 40))
	copy(silent[20:], []byte{0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 99, 10, 77, 0, 1})
	for range 5 {
		ah, err := l.a.pd.CreateAHFromWC(&wc, silent, 1)
		check(t, err)
		l.a.post(l.a.send(1, ah, l.b))
		expect(t, l.a.wait(1), ok(1))
		check(t, ah.Close()) // the response still waits
	}
	honest := verbs.GRH(make([]byte, 40))
	copy(honest[20:], []byte{0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1})
	delEntry(t, hosts.A, "10.77.0.2")
	ah, err := l.a.pd.CreateAHFromWC(&wc, honest, 1)
	check(t, err)
	message(t, l.a, l.b, ah, []byte("an answer"))
	eventually(t, "drops by name", func() bool { return l.a.drops()["unreachable"] == 5 })
	eventually(t, "the end of its path", func() bool { return len(l.a.device.paths.List()) == 1 && l.a.device.paths.Held() == 1 })
}

// The context ends the wait for a neighbour.
func TestCreateAHUntilContextIsDone(t *testing.T) {
	hosts := labtest.Pair(t)
	askOnlyOnce(t, hosts.A)
	s := newStation(t, open(t, hosts.A))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := s.pd.CreateAH(ctx, s.route("10.77.0.99"))
	refused(t, err, unix.EHOSTUNREACH, "has not answered yet")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if managed(t, hosts.A, "10.77.0.99") {
		t.Error("the neighbour is still being resolved")
	}
}

// Entries of others stay unchanged: the administrator's managed one, and a routing daemon's.
func TestOthersNeighbours(t *testing.T) {
	t.Parallel()
	for name, theirs := range map[string]netlink.Neigh{
		"managed by the administrator": {Flags: netlink.NTF_USE, FlagsExt: netlink.NTF_EXT_MANAGED},
		"learned by a routing daemon":  {Flags: netlink.NTF_EXT_LEARNED, State: netlink.NUD_REACHABLE},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := labtest.Pair(t)
			link := eth0(t, hosts.A)
			theirs.LinkIndex, theirs.IP = link.Attrs().Index, net.ParseIP("10.77.0.2")
			if theirs.State != 0 {
				theirs.HardwareAddr = eth0(t, hosts.B).Attrs().HardwareAddr
			}
			check(t, hosts.A.Netlink().NeighSet(&theirs))
			l := newStationsOn(t, hosts)
			ah := l.a.ah("10.77.0.2")
			message(t, l.a, l.b, ah, []byte("over an entry of others"))
			check(t, ah.Close())
			check(t, l.a.device.Close())
			n := entry(t, hosts.A, "10.77.0.2")
			if n == nil || n.FlagsExt != theirs.FlagsExt || n.Flags&netlink.NTF_EXT_LEARNED != theirs.Flags&netlink.NTF_EXT_LEARNED {
				t.Errorf("entry %+v", n)
			}
		})
	}
}

// A link-local destination is on the card's own link, even if another interface has the same address, or the same
// neighbour.
func TestLinkLocalDestination(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	check(t, hosts.B.AddAddress("eth0", "fe80::1/64"))
	addLink(t, hosts.A, netlink.NewVeth(attrs("eth1", 1500)), true)
	check(t, hosts.A.AddAddress("eth1", "fe80::1/64"))
	l := newStationsOn(t, hosts)
	route := l.a.route(linkLocal(t, hosts.B))
	route.GRH.DGID = gid("fe80::1")
	ah, err := l.a.pd.CreateAH(t.Context(), route)
	check(t, err)
	message(t, l.a, l.b, ah, []byte("on this link"))
}

// Packets beyond a route's own MTU are dropped and counted by name; smaller ones are sent.
func TestRouteMTU(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	check(t, l.B.AddAddress("eth0", "10.99.0.1/32"))
	eventually(t, "the GID", func() bool { return hasGID(l.b, "10.99.0.1") })
	r := routeVia("10.77.0.2")
	r.MTU = 600
	addRoute(t, l.A, r, "10.99.0.0/16")
	ah := l.a.ah("10.99.0.1")
	message(t, l.a, l.b, ah, pattern(512, 0))
	l.a.post(l.a.send(1, ah, l.b, l.a.piece(1, 513)))
	expect(t, l.a.wait(1), ok(1))
	if n := l.a.drops()["path_mtu"]; n != 1 {
		t.Errorf("drops %v", l.a.drops())
	}
	addRoute(t, l.A, routeVia("10.77.0.2"), "10.99.0.0/16")
	l.b.receive(0)
	eventually(t, "a message larger than the old route's MTU", func() bool {
		l.a.post(l.a.send(1, ah, l.b, l.a.piece(1, 513)))
		l.a.wait(1)
		return l.b.device.engine.Counters().Delivered > 1
	})
}

// A smaller MTU causes an event, and an error for the queue pair's next long send.
func TestMTUChangeIsAnEvent(t *testing.T) {
	t.Parallel()
	l := newStations(t)
	check(t, l.A.Netlink().LinkSetMTU(eth0(t, l.A), 600))
	for {
		if e := l.a.event(); e == mtuChange {
			break
		}
	}
	if port := l.a.port(); port.ActiveMTU.Bytes() != 512 {
		t.Errorf("port %+v", port)
	}
}

// ECN bits of a received packet are not in the response.
func TestAnswersHaveNoECN(t *testing.T) {
	s := newStillPair(t).a
	grh := make(verbs.GRH, 40)
	copy(grh[20:], []byte{0x45, 0x2E<<2 | 3, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1})
	attr, err := s.ctx.InitAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
	check(t, err)
	if attr.GRH.TrafficClass != 0x2E<<2 {
		t.Errorf("traffic class %#x", attr.GRH.TrafficClass)
	}
}

// Requests posted to a neighbour that has not responded yet are sent before the card is closed.
func TestCloseSendsWhatWaitsForANeighbour(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	for range 20 {
		a, b := newStation(t, open(t, hosts.A)), newStation(t, open(t, hosts.B))
		forget(t, hosts.A, address("10.77.0.2"))
		grh := verbs.GRH(make([]byte, 40))
		copy(grh[20:], []byte{0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1})
		ah, err := a.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grh, 1)
		check(t, err)
		b.receive(0)
		a.post(a.send(1, ah, b))
		check(t, a.device.Close())
		expect(t, b.wait(1), ok(0))
		check(t, b.device.Close())
	}
}

// A path lingers when its last handle is closed, so that the next handle needs no query.
func TestPathsLinger(t *testing.T) {
	t.Parallel()
	w, f := newFailingPair(t)
	a := w.a
	for range 100 {
		check(t, a.ah("10.0.0.2").Close())
	}
	if n := f.routes.Load(); n > 2 { // the follower's first look may be one
		t.Errorf("100 handles, one after the other: got %d route queries, want at most 2", n)
	}
	eventually(t, "the path's end", func() bool { return len(a.device.paths.List()) == 0 })
}
