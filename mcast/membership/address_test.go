// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// administrator adds an address to eth0 as ip-address(8) does.
func administrator(t *testing.T, host *lab.Namespace, cidr string, flags int) *netlink.Addr {
	t.Helper()
	address, err := netlink.ParseAddr(cidr)
	check(t, err)
	address.Flags = flags
	check(t, host.Netlink().AddrAdd(eth0(t, host), address))
	return address
}

// only checks that exactly one group is joined, and its method.
func only(t *testing.T, m *Memberships, want Joined) {
	t.Helper()
	if list := m.List(); len(list) != 1 || list[0] != want {
		t.Errorf("joined %+v, want %+v", list, want)
	}
}

func records(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "memberships-*"))
	check(t, err)
	return list
}

// TestAdministratorsAddressIsKept: an address of the administrator, with any prefix length, is used, not recorded, and
// kept with its route.
func TestAdministratorsAddressIsKept(t *testing.T) {
	for _, cidr := range []string{"239.1.2.3/32", "239.1.2.3/24"} {
		for _, via := range []Method{Netlink, Auto} {
			t.Run(fmt.Sprint(cidr, " ", via), func(t *testing.T) {
				host, group, dir := pair(t).A, ways[0].group, t.TempDir()
				administrator(t, host, cidr, unix.IFA_F_MCAUTOJOIN)
				before := stateOf(t, host, group)
				m := openWith(t, Config{Interface: "eth0", Namespace: host.Path(), Via: via, StateDir: dir})
				check(t, m.Join(group))
				only(t, m, Joined{group, 1, Netlink, true})
				if list := records(t, dir); len(list) != 0 {
					t.Errorf("recorded: %v", list)
				}
				check(t, m.Leave(group))
				check(t, m.Close())
				stateOf(t, host, group).compare(t, before, "after")
				if len(groupAddresses(t, host, group)) != 1 || !isMember(t, host, group) {
					t.Error("the administrator's membership was removed")
				}
			})
		}
	}
}

// TestAdministratorsAddressIsRemoved: when the administrator removes the address, ours replaces it.
func TestAdministratorsAddressIsRemoved(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	address := administrator(t, host, "239.1.2.3/32", unix.IFA_F_MCAUTOJOIN)
	m := open(t, host, Netlink)
	check(t, m.Join(group))
	check(t, host.Netlink().AddrDel(eth0(t, host), address))
	eventually(t, "address of ours", func() bool { return m.List()[0] == Joined{group, 1, Netlink, false} })
	if !isMember(t, host, group) || hasLocalRoute(t, host, group) {
		t.Error("not joined as expected")
	}
}

// TestAddressWithoutAutojoin: an existing address without autojoin does not count as a membership, and is not changed.
func TestAddressWithoutAutojoin(t *testing.T) {
	for _, cidr := range []string{"239.1.2.3/32", "239.1.2.3/24"} {
		t.Run(cidr, func(t *testing.T) {
			host, group := pair(t).A, ways[0].group
			administrator(t, host, cidr, 0)
			before := stateOf(t, host, group)
			refused(t, open(t, host, Netlink).Join(group), unix.EEXIST, "autojoin")
			m := open(t, host, Auto)
			check(t, m.Join(group))
			only(t, m, Joined{group, 1, Socket, false})
			if !isMember(t, host, group) {
				t.Error("not a member")
			}
			check(t, m.Close())
			stateOf(t, host, group).compare(t, before, "after")
		})
	}
}

// TestRemovedAddressIsRestored: an address of ours that another program removes is added again, without its local
// route.
func TestRemovedAddressIsRestored(t *testing.T) {
	t.Parallel()
	hosts, group := pair(t), ways[0].group
	w, m := watch(t, hosts.B), open(t, hosts.A, Netlink)
	check(t, m.Join(group))
	for range 3 {
		w.awaitQuiet(group)
		reports := w.count(capture.Report, group)
		address := groupAddresses(t, hosts.A, group)[0]
		check(t, hosts.A.Netlink().AddrDel(eth0(t, hosts.A), &address))
		eventually(t, "address", func() bool { return len(groupAddresses(t, hosts.A, group)) == 1 })
		eventually(t, "report", func() bool { return w.count(capture.Report, group) > reports })
		eventually(t, "no local route", func() bool { return !hasLocalRoute(t, hosts.A, group) })
		only(t, m, Joined{group, 1, Netlink, false})
	}
	check(t, m.Leave(group))
	if list := groupAddresses(t, hosts.A, group); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

// TestFlush: all addresses are flushed, as by network managers.
func TestFlush(t *testing.T) {
	host := pair(t).A
	m := open(t, host, Netlink)
	for i := range byte(15) {
		check(t, m.Join(netip.AddrFrom4([4]byte{239, 1, 1, i})))
	}
	list, err := host.Netlink().AddrList(eth0(t, host), netlink.FAMILY_V4)
	check(t, err)
	for _, address := range list {
		// When the host's own address was removed, the process removes its address too.
		if err := host.Netlink().AddrDel(eth0(t, host), &address); !errors.Is(err, unix.EADDRNOTAVAIL) {
			check(t, err)
		}
	}
	for i := range byte(15) {
		group := netip.AddrFrom4([4]byte{239, 1, 1, i})
		eventually(t, "membership", func() bool { return isMember(t, host, group) && !hasLocalRoute(t, host, group) })
	}
}

// TestReplacedAddressIsNotOurs: an address that the administrator has replaced is no longer treated as ours.
func TestReplacedAddressIsNotOurs(t *testing.T) {
	host, group, dir := pair(t).A, ways[0].group, t.TempDir()
	m := openWith(t, Config{Interface: "eth0", Namespace: host.Path(), Via: Netlink, StateDir: dir})
	check(t, m.Join(group))
	m.mu.Lock() // the change is read only after both steps
	check(t, host.Netlink().AddrDel(eth0(t, host), &groupAddresses(t, host, group)[0]))
	administrator(t, host, "239.1.2.3/32", unix.IFA_F_MCAUTOJOIN)
	m.mu.Unlock()
	eventually(t, "use of the other's address", func() bool { return m.List()[0].Foreign })
	if list := records(t, dir); len(list) != 0 {
		t.Errorf("recorded: %v", list)
	}
	check(t, m.Close())
	if len(groupAddresses(t, host, group)) != 1 {
		t.Error("the administrator's address was removed")
	}
}

// TestLongerAddressGoes: the kernel leaves a group when any of its addresses is removed, even one that had not joined.
func TestLongerAddressGoes(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	m := open(t, host, Netlink)
	check(t, m.Join(group))
	address := administrator(t, host, "239.1.2.3/24", 0)
	check(t, host.Netlink().AddrDel(eth0(t, host), address))
	eventually(t, "membership", func() bool { return isMember(t, host, group) })
	only(t, m, Joined{group, 1, Netlink, false})
}

// TestLeaveAndJoinAgain: a group can be joined again immediately after leaving.
func TestLeaveAndJoinAgain(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	m := open(t, host, Netlink)
	for range 50 {
		check(t, m.Join(group))
		check(t, m.Leave(group))
	}
	check(t, m.Join(group))
	only(t, m, Joined{group, 1, Netlink, false})
	if !isMember(t, host, group) {
		t.Error("not a member")
	}
	eventually(t, "no local route", func() bool { return !hasLocalRoute(t, host, group) })
}

// TestTwoOnOneInterface: a second Memberships on an interface uses the address of the first, and replaces it when the
// first has left.
func TestTwoOnOneInterface(t *testing.T) {
	host, group, dir := pair(t).A, ways[0].group, t.TempDir()
	config := Config{Interface: "eth0", Namespace: host.Path(), Via: Netlink, StateDir: dir}
	first, second := openWith(t, config), openWith(t, config)
	check(t, first.Join(group))
	check(t, second.Join(group))
	only(t, second, Joined{group, 1, Netlink, true})
	check(t, first.Close())
	eventually(t, "take-over", func() bool { return !second.List()[0].Foreign })
	if !isMember(t, host, group) {
		t.Error("not a member")
	}
	check(t, second.Close())
	if list := groupAddresses(t, host, group); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

// TestLocalRouteInAnotherTable: in a VRF the local route is in the VRF's table. It is removed when the kernel reports
// it. Routes not created by the kernel are kept.
func TestLocalRouteInAnotherTable(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	check(t, open(t, host, Netlink).Join(group))
	route := func(protocol netlink.RouteProtocol) *netlink.Route {
		return &netlink.Route{
			Table: 77, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Protocol: protocol,
			Dst: netlink.NewIPNet(group.AsSlice()), LinkIndex: eth0(t, host).Attrs().Index,
		}
	}
	check(t, host.Netlink().RouteAdd(route(unix.RTPROT_STATIC)))
	check(t, host.Netlink().RouteAppend(route(unix.RTPROT_KERNEL)))
	eventually(t, "removal of one", func() bool {
		list, err := host.Netlink().RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Table: 77}, netlink.RT_FILTER_TABLE)
		check(t, err)
		return len(list) == 1 && list[0].Protocol == unix.RTPROT_STATIC
	})
}
