// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The configuration for each kind of interface. Most kinds need modules that many kernels lack: hca/bond_test.go opens
// real ones in virtual machines.
func TestKinds(t *testing.T) {
	bond := netlink.NewLinkBond(attrs("bond0", 1500))
	team := &netlink.GenericLink{LinkAttrs: attrs("team0", 1500), LinkType: "team"}
	vlan := &netlink.Vlan{LinkAttrs: attrs("bond0.42", 1500)}
	veth := netlink.NewVeth(attrs("eth0", 1500))
	for _, row := range []struct {
		name       string
		link, base netlink.Link
		vlan       uint16
		mode       bpf.Mode
		refused    error
		says       []string
		generic    bool
		onLink     bool // XDP runs on the link itself, untagged
	}{
		{name: "veth", link: veth, base: veth, onLink: true},
		{name: "VLAN", link: vlan, base: veth, vlan: 42},
		{name: "bond", link: bond, base: bond, generic: true, onLink: true},
		{name: "bond, generic", link: bond, base: bond, mode: bpf.Generic, generic: true, onLink: true},
		{name: "bond, native", link: bond, base: bond, mode: bpf.Native, refused: bpf.ErrNoNative, says: []string{"bond0 is a bond", "slaves"}},
		{name: "team", link: team, base: team, generic: true, onLink: true},
		{name: "team, native", link: team, base: team, mode: bpf.Native, refused: unix.EOPNOTSUPP, says: []string{"team0 is a team"}},
		{name: "VLAN on a bond", link: vlan, base: bond, vlan: 42, generic: true, onLink: true},
		{name: "VLAN on a bond, native", link: vlan, base: bond, vlan: 42, mode: bpf.Native, refused: bpf.ErrNoNative},
		{name: "ipvlan l2", link: ipvlan(netlink.IPVLAN_MODE_L2), onLink: true},
		{name: "ipvlan l3", link: ipvlan(netlink.IPVLAN_MODE_L3), refused: verbs.ErrUnsupported, says: []string{"ipvlan of mode l3,", "macvlan"}},
		{name: "ipvlan l3s", link: ipvlan(netlink.IPVLAN_MODE_L3S), refused: verbs.ErrUnsupported, says: []string{"mode l3s"}},
		{name: "ipvtap l3", link: &netlink.IPVtap{IPVlan: *ipvlan(netlink.IPVLAN_MODE_L3)}, refused: verbs.ErrUnsupported},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := &builder{name: row.link.Attrs().Name, link: row.link, base: row.base, vlan: row.vlan, modes: modes{xdp: row.mode}}
			if row.base == nil {
				b.base = row.link
			}
			if err := b.checkKind(); row.refused != nil || err != nil {
				refused(t, err, row.refused, row.says...)
				return
			}
			b.chooseBase()
			if (b.generic != nil) != row.generic || (b.base == b.link && b.vlan == 0) != row.onLink {
				t.Errorf("generic: %v; on %s, VLAN %d", b.generic, b.base.Attrs().Name, b.vlan)
			}
		})
	}
}

func ipvlan(mode netlink.IPVlanMode) *netlink.IPVlan {
	return &netlink.IPVlan{LinkAttrs: attrs("ipvl0", 1500), Mode: mode}
}

// The master of an interface is named: in an error if the interface cannot work.
func TestMasters(t *testing.T) {
	for _, row := range []struct {
		master  netlink.Link
		refused bool
		warns   bool
	}{
		{netlink.NewLinkBond(attrs("bond0", 1500)), true, false},
		{&netlink.GenericLink{LinkAttrs: attrs("team0", 1500), LinkType: "team"}, true, false},
		{&netlink.Bridge{LinkAttrs: attrs("br0", 1500)}, false, true},
		{&netlink.GenericLink{LinkAttrs: attrs("ovs-system", 1500), LinkType: "openvswitch"}, false, true},
		{&netlink.Vrf{LinkAttrs: attrs("vrf0", 1500)}, false, false},
	} {
		var log logged
		b := &builder{name: "eth0", base: netlink.NewVeth(attrs("eth0", 1500)), config: Config{Log: log.logger()}}
		err := b.judgeMaster(row.master)
		if row.refused {
			refused(t, err, verbs.ErrUnsupported, "eth0 is a slave of the "+row.master.Type(), "open "+row.master.Attrs().Name)
		} else {
			check(t, err)
		}
		if log.says("master="+row.master.Attrs().Name) != row.warns {
			t.Errorf("%s: warned %v", row.master.Type(), !row.warns)
		}
	}
}
