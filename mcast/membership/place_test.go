// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/capture"
	"github.com/vishvananda/netlink"
)

// firstAddress returns the first IPv4 address in the kernel's list, which NAT's REDIRECT uses.
func firstAddress(t *testing.T, host *lab.Namespace) string {
	t.Helper()
	list, err := host.Netlink().AddrList(eth0(t, host), netlink.FAMILY_V4)
	check(t, err)
	if len(list) == 0 {
		return ""
	}
	return list[0].IP.String()
}

// flap removes the host's own address and adds it again, as a DHCP client does.
func flap(t *testing.T, host *lab.Namespace) {
	t.Helper()
	address, err := netlink.ParseAddr("10.77.0.1/24")
	check(t, err)
	check(t, host.Netlink().AddrDel(eth0(t, host), address))
	check(t, host.AddAddress("eth0", "10.77.0.1/24"))
}

// A group's address is never the first of the interface: not after the join, not when the own address is
// removed and added again, and not without an own address. None of this causes a leave.
func TestNeverTheFirstAddress(t *testing.T) {
	hosts, group := pair(t), ways[0].group
	w, m := watch(t, hosts.B), open(t, hosts.A, Netlink)
	check(t, m.Join(group))
	check(t, m.Join(ways[0].marker))
	w.awaitQuiet(group)
	before := stateOf(t, hosts.A, group)
	for range 5 {
		flap(t, hosts.A)
		eventually(t, "the own address is first", func() bool { return firstAddress(t, hosts.A) == "10.77.0.1" })
		eventually(t, "addresses for both groups", func() bool {
			for _, one := range m.List() {
				if one.Via != Netlink || len(groupAddresses(t, hosts.A, one.Group)) != 1 || hasLocalRoute(t, hosts.A, one.Group) {
					return false
				}
			}
			return firstAddress(t, hosts.A) == "10.77.0.1"
		})
		stateOf(t, hosts.A, group).compare(t, before, "after a flap")
	}
	address, err := netlink.ParseAddr("10.77.0.1/24")
	check(t, err)
	check(t, hosts.A.Netlink().AddrDel(eth0(t, hosts.A), address))
	eventually(t, "no address is left", func() bool { return firstAddress(t, hosts.A) == "" })
	if !isMember(t, hosts.A, group) || m.List()[0].Via != Socket {
		t.Errorf("not a member by socket: %+v", m.List())
	}
	if n := w.count(capture.Leave, group); n != 0 {
		t.Errorf("%d leaves", n)
	}
	check(t, m.Leave(group))
	eventually(t, "the leave", func() bool { return !isMember(t, hosts.A, group) })
}

// TestOneOfTwoAddressesFlaps: an own address that is removed and added again is behind the other own address, and
// before the group's.
func TestOneOfTwoAddressesFlaps(t *testing.T) {
	hosts, group := pair(t), ways[0].group
	check(t, hosts.A.AddAddress("eth0", "10.78.0.1/24"))
	m := open(t, hosts.A, Netlink)
	check(t, m.Join(group))
	flap(t, hosts.A)
	check(t, m.Join(ways[0].marker)) // earlier changes may be processed later
	if first := firstAddress(t, hosts.A); first != "10.78.0.1" {
		t.Errorf("the first address is %s", first)
	}
}

// TestAddressIsRemovedRepeatedly: if another program removes the address repeatedly, a socket is used instead.
func TestAddressIsRemovedRepeatedly(t *testing.T) {
	hosts, group, log := pair(t), ways[0].group, new(logged)
	m := openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), StateDir: t.TempDir(), Log: log.logger()})
	check(t, m.Join(group))
	eventually(t, "a socket", func() bool {
		for _, address := range groupAddresses(t, hosts.A, group) {
			_ = hosts.A.Netlink().AddrDel(eth0(t, hosts.A), &address)
		}
		return m.List()[0].Via == Socket
	})
	if !isMember(t, hosts.A, group) || !strings.Contains(log.String(), errRemoved.Error()) {
		t.Errorf("member %v; logged:\n%s", isMember(t, hosts.A, group), log)
	}
	if list := groupAddresses(t, hosts.A, group); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

// TestRename: renaming the interface does not affect memberships, and the address of a killed process is found under
// the new name.
func TestRename(t *testing.T) {
	hosts, group := pair(t), ways[0].group
	link := eth0(t, hosts.A)
	rename := func(name string) {
		check(t, hosts.A.Netlink().LinkSetDown(link))
		check(t, hosts.A.Netlink().LinkSetName(link, name))
		check(t, hosts.A.Netlink().LinkSetUp(link))
	}
	dir := t.TempDir()
	_, kill := startChild(t, hosts.A, order{hosts.A.Path(), dir, Netlink, group}, nil)
	m := openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), Via: Netlink, StateDir: dir})
	check(t, m.Join(ways[0].marker))
	rename("a-name-of-fifte")
	t.Cleanup(func() { rename("eth0") })
	member := func(group netip.Addr) bool {
		list, err := hosts.A.Netlink().AddrList(link, netlink.FAMILY_V4)
		check(t, err)
		for _, address := range list {
			if address.IP.Equal(group.AsSlice()) {
				return true
			}
		}
		return false
	}
	check(t, hosts.A.Netlink().AddrDel(link, &netlink.Addr{IPNet: single(ways[0].marker)}))
	eventually(t, "the address, put back", func() bool { return member(ways[0].marker) })
	only(t, m, Joined{ways[0].marker, 1, Netlink, false})
	kill()
	if !member(group) {
		t.Fatal("the killed process left no address")
	}
	openWith(t, Config{Interface: "a-name-of-fifte", Namespace: hosts.A.Path(), Via: Socket, StateDir: dir})
	if member(group) {
		t.Error("the killed process's address was not removed")
	}
}

// TestRestoreCount: maxRestores are allowed within a restorePeriod, after which the count restarts.
func TestRestoreCount(t *testing.T) {
	var p restoreCount
	start := time.Now()
	for _, step := range []struct {
		name  string
		after time.Duration
		times int
		up    bool
	}{
		{"the maximum", 0, maxRestores, false},
		{"above the maximum", 0, 1, true},
		{"at the end of the period", restorePeriod, 1, true},
		{"in the next period", restorePeriod + 1, maxRestores, false},
		{"above the maximum in that", 2 * restorePeriod, 1, true},
		{"in a period that starts later", 5 * restorePeriod, 1, false},
	} {
		for i := range step.times {
			if up := p.exceeded(start.Add(step.after)); up != step.up {
				t.Errorf("%s, restore %d: exceeded %v", step.name, i+1, up)
			}
		}
	}
}
