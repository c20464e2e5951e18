// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// host makes random changes to a host. Failures due to earlier changes are ignored.
func (s *stress) host(ns *lab.Namespace) func(*rand.Rand) error {
	index := eth0(s, ns).Attrs().Index
	nl := ns.Netlink()
	link := func() netlink.Link { return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}} }
	own := map[*lab.Namespace]string{s.lab.A: "10.77.0.1/24", s.lab.B: "10.77.0.2/24"}[ns]
	addr := func(cidr string) *netlink.Addr {
		a, err := netlink.ParseAddr(cidr)
		check(s, err)
		return a
	}
	_, far, _ := net.ParseCIDR("10.99.0.0/16")
	changes := []func(*rand.Rand) error{
		func(r *rand.Rand) error {
			return errors.Join(nl.LinkSetDown(link()), wait(r), nl.LinkSetUp(link()))
		},
		func(r *rand.Rand) error {
			mtu := []int{300, 700, 1300, 1500, 3000}[r.IntN(5)]
			return errors.Join(nl.LinkSetMTU(link(), mtu), wait(r), nl.LinkSetMTU(link(), 1500))
		},
		func(r *rand.Rand) error {
			return errors.Join(nl.AddrDel(link(), addr(own)), wait(r), nl.AddrAdd(link(), addr(own)))
		},
		func(r *rand.Rand) error {
			more := fmt.Sprintf("10.77.1.%d/24", r.IntN(200)+1)
			return errors.Join(nl.AddrAdd(link(), addr(more)), wait(r), nl.AddrDel(link(), addr(more)))
		},
		func(r *rand.Rand) error {
			return nl.NeighDel(&netlink.Neigh{LinkIndex: index, IP: net.IPv4(10, 77, 0, byte(1+r.IntN(2)))})
		},
		func(r *rand.Rand) error {
			route := &netlink.Route{Dst: far, LinkIndex: index, Gw: net.IPv4(10, 77, 0, byte(1+r.IntN(2)))}
			return errors.Join(nl.RouteReplace(route), wait(r), nl.RouteDel(route))
		},
		func(r *rand.Rand) error {
			return errors.Join(nl.LinkSetDown(link()), nl.LinkSetName(link(), "other0"), nl.LinkSetUp(link()), wait(r),
				nl.LinkSetDown(link()), nl.LinkSetName(link(), "eth0"), nl.LinkSetUp(link()))
		},
	}
	return func(r *rand.Rand) error {
		return onlyStrange(changes[r.IntN(len(changes))](r))
	}
}

// wait sleeps for a moment, in the middle of a change.
func wait(r *rand.Rand) error {
	time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
	return nil
}

// onlyStrange ignores errors that are due to earlier changes.
func onlyStrange(err error) error {
	for _, usual := range []error{unix.EADDRNOTAVAIL, unix.EEXIST, unix.ESRCH, unix.ENOENT, unix.ENETDOWN, unix.ENETUNREACH, unix.EINVAL, unix.EHOSTUNREACH, unix.ENODEV} {
		if errors.Is(err, usual) {
			return nil
		}
	}
	return err
}

// killer kills processes that are members of groups on another interface of the same host.
func (s *stress) killer(r *rand.Rand) error {
	if r.IntN(10) > 0 {
		return wait(r)
	}
	kill := startSender(s.T, s.lab.A, sendOrder{Interface: "eth1", Group: address("239.7.7.7"), Flags: verbs.JoinFullMember, StateDir: s.TempDir()})
	time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
	kill()
	return nil
}

// restore restores the hosts.
func (s *stress) restore() {
	for ns, own := range map[*lab.Namespace][]string{s.lab.A: {"10.77.0.1/24", "fd77::1/64"}, s.lab.B: {"10.77.0.2/24", "fd77::2/64"}} {
		check(s, ns.Netlink().LinkSetUp(eth0(s, ns)))
		check(s, ns.Netlink().LinkSetMTU(eth0(s, ns), 1500))
		for _, cidr := range own {
			a, err := netlink.ParseAddr(cidr)
			check(s, err)
			check(s, ns.Netlink().AddrReplace(eth0(s, ns), a))
		}
	}
	for _, station := range []*station{s.lab.a, s.lab.b} {
		eventually(s, "the original state of the port", func() bool {
			return station.port().State == verbs.PortActive && station.port().ActiveMTU.Bytes() == 1024 &&
				(hasGID(station, "10.77.0.1") || hasGID(station, "10.77.0.2"))
		})
	}
}

// settle sends until messages arrive again, both ways, and then waits until all counters are stable.
func (s *stress) settle() {
	for _, way := range []struct {
		from, to *station
		address  string
	}{{s.lab.a, s.lab.b, "10.77.0.2"}, {s.lab.b, s.lab.a, "10.77.0.1"}} {
		send := s.sender(way.from, way.to, way.address)
		before := way.to.device.engine.Counters().Delivered
		eventually(s, "messages from "+way.from.device.Name(), func() bool {
			check(s, send(rand.New(rand.NewPCG(1, 2))))
			return way.to.device.engine.Counters().Delivered > before+100
		})
	}
	var last datapath.Counters
	eventually(s, "rest", func() bool {
		time.Sleep(50 * time.Millisecond)
		now := s.lab.a.device.engine.Counters()
		other := s.lab.b.device.engine.Counters()
		now.Received += other.Received
		still := now.Received == last.Received && now.Sent == last.Sent
		last = now
		return still
	})
}

// addUp checks that every packet is counted once: each packet that XDP redirected by the socket or the engine, and each
// that the engine received as delivered or as a named drop.
func (s *stress) addUp(station *station) {
	all, err := station.device.Statistics()
	check(s, err)
	e := all.Engine
	dropped := e.Dropped()
	for _, reason := range datapath.Reasons() {
		if reason.Unsent() {
			dropped -= e.Drops[reason]
		}
	}
	if e.Received+e.Copies != e.Delivered+dropped {
		s.Errorf("received %d and %d copies, delivered %d, dropped %d: %v", e.Received, e.Copies, e.Delivered, dropped, station.drops())
	}
}
