// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestInterfaceIsRemoved: the removal of the interface while groups are joined is logged, and later joins return it as
// an error.
func TestInterfaceIsRemoved(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			hosts, log, dir := pair(t), new(logged), t.TempDir()
			m := openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), Via: way.via, StateDir: dir, Log: log.logger()})
			check(t, m.Join(way.group))
			check(t, m.Join(way.marker))
			check(t, hosts.A.Netlink().LinkDel(eth0(t, hosts.A)))
			eventually(t, "message", func() bool { return strings.Contains(log.String(), "interface has gone") })
			refused(t, m.Join(way.group), unix.ENODEV, "eth0")
			check(t, m.Leave(way.group))
			check(t, m.Close())
			if strings.Count(log.String(), "level=ERROR") != 1 {
				t.Errorf("logged:\n%s", log)
			}
			if list := records(t, dir); len(list) != 0 {
				t.Errorf("recorded: %v", list)
			}
		})
	}
}

// TestLeavesBridge: an interface that is removed from a bridge still exists.
func TestLeavesBridge(t *testing.T) {
	hosts, log := pair(t), new(logged)
	m := openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), StateDir: t.TempDir(), Log: log.logger()})
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "br0"
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	check(t, hosts.A.Netlink().LinkAdd(bridge))
	check(t, hosts.A.Netlink().LinkSetMaster(eth0(t, hosts.A), bridge))
	check(t, hosts.A.Netlink().LinkSetNoMaster(eth0(t, hosts.A)))
	// Changes are processed in order: when the address exists again, earlier changes have been processed.
	check(t, m.Join(ways[0].group))
	check(t, hosts.A.Netlink().AddrDel(eth0(t, hosts.A), &groupAddresses(t, hosts.A, ways[0].group)[0]))
	eventually(t, "address", func() bool { return len(groupAddresses(t, hosts.A, ways[0].group)) == 1 })
	check(t, m.Join(ways[0].marker))
	if log.String() != "" {
		t.Errorf("logged:\n%s", log)
	}
}

// TestRepair: after lost notifications the complete state is checked.
func TestRepair(t *testing.T) {
	host, group := pair(t).A, ways[0].group
	m := open(t, host, Netlink)
	check(t, m.Join(group))
	m.mu.Lock()
	defer m.mu.Unlock()
	check(t, host.Netlink().AddrDel(eth0(t, host), &groupAddresses(t, host, group)[0]))
	check(t, m.repair(everything()))
	if !isMember(t, host, group) || hasLocalRoute(t, host, group) {
		t.Error("not repaired")
	}
	check(t, host.Netlink().LinkDel(eth0(t, host)))
	check(t, m.repair(everything()))
	if m.ended != errGone {
		t.Errorf("ended: %v", m.ended)
	}
}

// TestSmallMTU: a small MTU disables IPv6 on the interface, a larger one enables it again.
func TestSmallMTU(t *testing.T) {
	hosts, group, log := pair(t), ways[2].group, new(logged)
	m := openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), Log: log.logger()})
	for _, way := range ways {
		check(t, m.Join(way.group))
	}
	for range 3 {
		check(t, hosts.A.Netlink().LinkSetMTU(eth0(t, hosts.A), minIPv6MTU-1))
		eventually(t, "loss", func() bool { list := m.List(); return list[len(list)-1] == Joined{group, 1, Auto, false} })
		refused(t, m.Join(ways[2].marker), unix.EINVAL, "MTU")
		check(t, hosts.A.Netlink().LinkSetMTU(eth0(t, hosts.A), minIPv6MTU))
		eventually(t, "membership", func() bool { return isMember(t, hosts.A, group) })
		if !isMember(t, hosts.A, ways[0].group) || !isMember(t, hosts.A, ways[1].group) {
			t.Error("IPv4 groups are lost")
		}
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 || !strings.Contains(log.String(), "mtu=1279") {
		t.Errorf("logged:\n%s", log)
	}
	check(t, m.Leave(group))
}
