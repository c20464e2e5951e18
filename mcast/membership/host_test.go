// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// state is the part of a host's state that a membership must not change.
type state struct {
	routes, addresses []string
	ways              map[string]string
	ioctl             string
}

func stateOf(t *testing.T, host *lab.Namespace, group netip.Addr) state {
	t.Helper()
	s := state{routes: routes(t, host), addresses: ownAddresses(t, host), ways: map[string]string{}, ioctl: ioctlAddress(t, host)}
	index := eth0(t, host).Attrs().Index
	for _, dest := range []string{"10.77.0.2", "10.77.0.1", "fd77::2", "224.0.0.5", "239.99.9.9", "ff02::5", "ff05::5", group.String()} {
		s.ways[dest] = way(t, host, dest, 0)
		s.ways[dest+" dev eth0"] = way(t, host, dest, index)
	}
	return s
}

func (s state) compare(t *testing.T, before state, when string) {
	t.Helper()
	if !reflect.DeepEqual(s, before) {
		t.Errorf("%s: %+v\nbefore: %+v", when, s, before)
	}
}

// upAgain sets a host's eth0 down and up, and waits until the state is as before.
func upAgain(t *testing.T, hosts *labtest.PairLab, before state, group netip.Addr) {
	t.Helper()
	check(t, hosts.A.Netlink().LinkSetDown(eth0(t, hosts.A)))
	check(t, hosts.A.Netlink().LinkSetUp(eth0(t, hosts.A)))
	// The kernel removes the administrator's IPv6 addresses when the link goes down.
	check(t, hosts.A.AddAddress("eth0", "fd77::1/64"))
	eventually(t, "link up, as before", func() bool { return reflect.DeepEqual(stateOf(t, hosts.A, group), before) })
}

// TestHostIsAsBefore: addresses, routes and the selection of a source are the same before, during and after a
// membership, even if the link goes down and up meanwhile.
func TestHostIsAsBefore(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts := pair(t)
			m := open(t, hosts.A, way.via)
			before := stateOf(t, hosts.A, way.group)
			check(t, m.Join(way.group))
			eventually(t, "routes as before", func() bool { return !hasLocalRoute(t, hosts.A, way.group) })
			stateOf(t, hosts.A, way.group).compare(t, before, "joined")
			list := groupAddresses(t, hosts.A, way.group)
			if (way.via == Netlink) != (len(list) == 1) {
				t.Errorf("addresses %v", list)
			}
			for _, a := range list {
				const flags = unix.IFA_F_MCAUTOJOIN | unix.IFA_F_NOPREFIXROUTE | unix.IFA_F_PERMANENT
				if a.Label != "eth0:roced" || a.Scope != unix.RT_SCOPE_UNIVERSE || a.Flags != flags || a.IPNet.String() != way.group.String()+"/32" {
					t.Errorf("address %v, scope %d, flags %#x", a, a.Scope, a.Flags)
				}
			}
			w := watch(t, hosts.B)
			upAgain(t, hosts, before, way.group)
			eventually(t, "report after link up", func() bool { return w.count(capture.Report, way.group) > 0 })
			check(t, m.Leave(way.group))
			stateOf(t, hosts.A, way.group).compare(t, before, "left")
		})
	}
}

// TestHostWithoutAddress: on an interface without an IPv4 address, joining a group does not add one.
func TestHostWithoutAddress(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			host := pair(t).A
			address, err := netlink.ParseAddr("10.77.0.1/24")
			check(t, err)
			check(t, host.Netlink().AddrDel(eth0(t, host), address))
			check(t, host.AddAddress("lo", "10.99.0.1/32")) // the source address
			m := open(t, host, way.via)
			before := stateOf(t, host, way.group)
			check(t, m.Join(way.group))
			stateOf(t, host, way.group).compare(t, before, "joined")
			check(t, m.Leave(way.group))
			stateOf(t, host, way.group).compare(t, before, "left")
		})
	}
}

// TestJoinWhileDown: a group that was joined while the link was down is reported when the link comes up, and has no
// route.
func TestJoinWhileDown(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts := pair(t)
			w, m := watch(t, hosts.B), open(t, hosts.A, way.via)
			before := stateOf(t, hosts.A, way.group)
			check(t, hosts.A.Netlink().LinkSetDown(eth0(t, hosts.A)))
			check(t, m.Join(way.group))
			if n := w.count(capture.Report, way.group); n != 0 {
				t.Fatalf("%d reports on a link that is down", n)
			}
			upAgain(t, hosts, before, way.group)
			eventually(t, "report after link up", func() bool { return w.count(capture.Report, way.group) > 0 })
		})
	}
}

// TestAddressesChange: the membership does not depend on the host's own addresses.
func TestAddressesChange(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts := pair(t)
			w, m := watch(t, hosts.B), open(t, hosts.A, way.via)
			check(t, m.Join(way.group))
			w.awaitQuiet(way.group)
			for _, cidr := range []string{"10.77.0.1/24", "fd77::1/64"} {
				address, err := netlink.ParseAddr(cidr)
				check(t, err)
				check(t, hosts.A.Netlink().AddrDel(eth0(t, hosts.A), address))
			}
			check(t, hosts.A.AddAddress("eth0", "10.78.0.1/24"))
			if !isMember(t, hosts.A, way.group) {
				t.Error("no longer a member")
			}
			if n := w.count(capture.Leave, way.group); n != 0 {
				t.Errorf("%d leaves", n)
			}
			if got := ioctlAddress(t, hosts.A); got != "10.78.0.1" {
				t.Errorf("SIOCGIFADDR returns %s", got)
			}
		})
	}
}

// TestRouteLocalnet: even with route_localnet, the kernel does not send from the group's address.
func TestRouteLocalnet(t *testing.T) {
	group := ways[0].group
	for _, scope := range []string{"all", "eth0"} {
		t.Run(scope, func(t *testing.T) {
			host := pair(t).A
			sysctl(t, host, "ipv4/conf/"+scope+"/route_localnet", "1")
			before := stateOf(t, host, group)
			m := open(t, host, Netlink)
			check(t, m.Join(group))
			only(t, m, Joined{group, 1, Netlink, false})
			eventually(t, "no local route", func() bool { return !hasLocalRoute(t, host, group) })
			stateOf(t, host, group).compare(t, before, "joined")
		})
	}
}

// TestHostUsesTheGroup: the host's own sender and receiver of the group work before, during and after a membership. Our
// last Leave sends no leave message while the receiver is a member.
func TestHostUsesTheGroup(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts := pair(t)
			w, m := watch(t, hosts.B), open(t, hosts.A, way.via)
			a, b := newTalker(t, hosts.A, way.group), newTalker(t, hosts.B, way.group)
			talk := func(when string) {
				t.Helper()
				source := way.group.Is4()
				for _, receiver := range []*talker{a, b} {
					a.send(when + " from a")
					receiver.receive(when+" from a", map[bool]string{true: "10.77.0.1", false: "fd77::1"}[source])
					b.send(when + " from b")
					receiver.receive(when+" from b", map[bool]string{true: "10.77.0.2", false: "fd77::2"}[source])
				}
			}
			talk("before")
			check(t, m.Join(way.group))
			talk("during")
			check(t, m.Leave(way.group))
			talk("after")
			if n := w.count(capture.Leave, way.group); n != 0 || !isMember(t, hosts.A, way.group) {
				t.Errorf("%d leaves, while the host itself is a member", n)
			}
		})
	}
}

// TestNeighbours: neighbours are resolved before, during and after a membership, with the correct source address.
func TestNeighbours(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts := pair(t)
			m := open(t, hosts.A, way.via)
			findEachOther(t, hosts, "before")
			check(t, m.Join(way.group))
			findEachOther(t, hosts, "during")
			check(t, m.Leave(way.group))
			findEachOther(t, hosts, "after")
		})
	}
}

// findEachOther makes two hosts resolve each other and exchange a message.
func findEachOther(t *testing.T, hosts *labtest.PairLab, when string) {
	t.Helper()
	for _, address := range []string{"10.77.0.2", "fd77::2"} {
		own := address[:len(address)-1] + "1"
		forget(t, hosts.A, address)
		forget(t, hosts.B, own)
		receiver, from := newTalker(t, hosts.B, netip.MustParseAddr(address)), newTalker(t, hosts.A, netip.MustParseAddr(own))
		from.to = receiver.to
		from.send(when)
		receiver.receive(when, own)
		receiver.close()
		from.close()
	}
	neighbours, err := hosts.B.Netlink().NeighList(eth0(t, hosts.B).Attrs().Index, netlink.FAMILY_V4)
	check(t, err)
	for _, n := range neighbours {
		if n.IP.String() != "10.77.0.1" && n.State != unix.NUD_NOARP {
			t.Errorf("%s: the other host has neighbour %v", when, fmt.Sprint(n))
		}
	}
}

// forget removes a neighbour from a host's table, if it exists.
func forget(t *testing.T, host *lab.Namespace, neighbour string) {
	t.Helper()
	err := host.Netlink().NeighDel(&netlink.Neigh{LinkIndex: eth0(t, host).Attrs().Index, IP: netip.MustParseAddr(neighbour).AsSlice()})
	if err != nil {
		refused(t, err, unix.ENOENT)
	}
}
