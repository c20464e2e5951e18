// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestGroupIsNotUsable: a group's address on the interface is not usable, and is not returned as a source address,
// although the kernel selects it.
func TestGroupIsNotUsable(t *testing.T) {
	hosts := labtest.Pair(t)
	nl := hosts.A.Netlink()
	link, err := nl.LinkByName("eth0")
	check(t, err)
	list, err := nl.AddrList(link, netlink.FAMILY_V4)
	check(t, err)
	for _, own := range list {
		check(t, nl.AddrDel(link, &netlink.Addr{IPNet: own.IPNet}))
	}
	group := &net.IPNet{IP: net.IPv4(239, 1, 2, 3), Mask: net.CIDRMask(32, 32)}
	check(t, nl.AddrAdd(link, &netlink.Addr{IPNet: group, Flags: unix.IFA_F_MCAUTOJOIN | unix.IFA_F_NOPREFIXROUTE}))
	check(t, hosts.A.AddAddress("eth0", "10.77.0.1/24"))
	check(t, nl.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4(10, 99, 0, 0), Mask: net.CIDRMask(16, 32)}, Scope: netlink.SCOPE_LINK}))
	routes, err := nl.RouteGet(net.IPv4(10, 99, 0, 1))
	check(t, err)
	if len(routes) != 1 || !routes[0].Src.IsMulticast() {
		t.Fatalf("the kernel's source is not the group's address: %v", routes)
	}
	q := queries(t, hosts.A)
	source, err := q.Source(netip.MustParseAddr("10.99.0.1"))
	check(t, err)
	if source.IsValid() {
		t.Errorf("packets would be sent from %v", source)
	}
	all, err := q.Addresses()
	check(t, err)
	if len(all) < 2 || !all[0].IP.IsMulticast() || all[0].Usable() {
		t.Errorf("the group's address is usable or is not listed first: %+v", all)
	}
}

// TestBroadcasts: the broadcast addresses are those that the kernel derives: the last address of each subnet, and the
// configured one, but no address of a host.
func TestBroadcasts(t *testing.T) {
	for _, row := range []struct{ address, configured, want string }{
		{"10.77.0.2/24", "", "10.77.0.255"},
		{"192.168.1.2/24", "", "192.168.1.255"},
		{"10.7.9.2/24", "10.7.9.255", "10.7.9.255"},
		{"172.31.255.9/16", "", "172.31.255.255"},
		{"10.0.0.5/30", "", "10.0.0.7"},
		{"10.255.3.4/8", "", "10.255.255.255"},
		{"10.0.0.2/0", "", "255.255.255.255"},
		{"10.0.0.2/31", "", ""},
		{"10.0.0.2/32", "10.0.0.9", "10.0.0.9"},
		{"fd77::1/64", "", ""},
	} {
		prefix := netip.MustParsePrefix(row.address)
		a := Address{IP: prefix.Addr(), Prefix: prefix.Bits()}
		var want []netip.Addr
		if row.configured != "" {
			a.Broadcast = netip.MustParseAddr(row.configured)
		}
		if row.want != "" {
			want = []netip.Addr{netip.MustParseAddr(row.want)}
		}
		if got := Broadcasts([]Address{a}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", row.address, got, want)
		}
	}
}
