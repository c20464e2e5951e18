// SPDX-License-Identifier: Apache-2.0

//go:build vlan

package hca

import (
	"fmt"
	"testing"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
)

// newBonds creates a bond on both hosts' eth0, with the addresses of labtest's VLAN picture.
func newBonds(t *testing.T, mode netlink.BondMode) *labtest.PairLab {
	t.Helper()
	hosts := labtest.Pair(t)
	for i, host := range []*lab.Namespace{hosts.A, hosts.B} {
		addBond(t, host, mode)
		check(t, host.AddAddress("bond0", fmt.Sprintf("10.99.0.%d/24", i+1)))
	}
	return hosts
}

// addBond creates a bond on a host's eth0.
func addBond(t *testing.T, host *lab.Namespace, mode netlink.BondMode) {
	t.Helper()
	bond := netlink.NewLinkBond(attrs("bond0", 1500))
	bond.Mode, bond.Miimon = mode, 10
	if mode == netlink.BOND_MODE_802_3AD {
		bond.MinLinks, bond.LacpRate = 0, netlink.BOND_LACP_RATE_FAST
	}
	nl := host.Netlink()
	check(t, nl.LinkAdd(bond))
	check(t, nl.LinkSetDown(eth0(t, host)))
	check(t, nl.LinkSetMaster(eth0(t, host), bond))
	check(t, nl.LinkSetUp(eth0(t, host)))
	check(t, nl.LinkSetUp(bond))
}

func openNamed(t *testing.T, host *lab.Namespace, name string, options ...Option) *station {
	t.Helper()
	d, err := Open(name, append(options, InNamespace(host.Path()))...)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	s := newStation(t, d)
	eventually(t, name, func() bool {
		port, err := s.ctx.QueryPort(1)
		check(t, err)
		return port.State == verbs.PortActive
	})
	return s
}

var bondModes = []netlink.BondMode{
	netlink.BOND_MODE_BALANCE_RR, netlink.BOND_MODE_ACTIVE_BACKUP, netlink.BOND_MODE_BALANCE_XOR, netlink.BOND_MODE_BROADCAST,
	netlink.BOND_MODE_802_3AD, netlink.BOND_MODE_BALANCE_TLB, netlink.BOND_MODE_BALANCE_ALB,
}

// Bonds of every mode carry messages in generic mode, which the log reports; so does a VLAN on a bond.
func TestBonds(t *testing.T) {
	for _, mode := range bondModes {
		t.Run(mode.String(), func(t *testing.T) {
			hosts := newBonds(t, mode)
			var log logged
			a, b := openNamed(t, hosts.A, "bond0", log.option()), openNamed(t, hosts.B, "bond0")
			l := &stations{hosts, a, b}
			l.bothWays(t, "10.99.0.1", "10.99.0.2", 512)
			if !log.says("bond0 is a bond") || a.device.host.Modes().XDP != "generic" {
				t.Error("XDP is not generic, or the log does not report it")
			}
			if got := counts(t, b.device); got["drop_redirect"] != 0 || got["pass_other_host"] != 0 {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestVlanOnABond(t *testing.T) {
	hosts := newBonds(t, netlink.BOND_MODE_ACTIVE_BACKUP)
	for i, host := range []*lab.Namespace{hosts.A, hosts.B} {
		_, err := host.VLAN("bond0", vlanID)
		check(t, err)
		check(t, host.AddAddress("bond0.42", fmt.Sprintf("10.42.0.%d/24", i+1)))
	}
	l := &stations{hosts, openNamed(t, hosts.A, "bond0.42"), openNamed(t, hosts.B, "bond0.42")}
	l.bothWays(t, "10.42.0.1", "10.42.0.2", 512)
}

// Native XDP on a bond is refused, and so is a slave; the error names the bond.
func TestBondRefused(t *testing.T) {
	hosts := newBonds(t, netlink.BOND_MODE_ACTIVE_BACKUP)
	_, err := Open("bond0", InNamespace(hosts.A.Path()), WithXDPMode(XDPNative))
	refused(t, err, bpf.ErrNoNative, "bond0 is a bond")
	_, err = Open("eth0", InNamespace(hosts.A.Path()))
	refused(t, err, verbs.ErrUnsupported, "eth0 is a slave of the bond bond0", "open bond0")
}

// A team behaves like a bond: generic XDP, and its slave is refused.
func TestTeam(t *testing.T) {
	hosts := labtest.Pair(t)
	nl := hosts.A.Netlink()
	team := &netlink.GenericLink{LinkAttrs: attrs("team0", 1500), LinkType: "team"}
	check(t, nl.LinkAdd(team))
	check(t, nl.LinkSetDown(eth0(t, hosts.A)))
	check(t, nl.LinkSetMaster(eth0(t, hosts.A), linkNamed(t, hosts.A, "team0")))
	check(t, nl.LinkSetUp(eth0(t, hosts.A)))
	check(t, nl.LinkSetUp(linkNamed(t, hosts.A, "team0")))
	var log logged
	d, err := Open("team0", InNamespace(hosts.A.Path()), log.option())
	check(t, err)
	if !log.says("team0 is a team") {
		t.Error("the log does not report why XDP is generic")
	}
	check(t, d.Close())
	_, err = Open("eth0", InNamespace(hosts.A.Path()))
	refused(t, err, verbs.ErrUnsupported, "eth0 is a slave of the team team0")
}

// An ipvlan of mode l2 carries messages; XDP refuses one of mode l3.
func TestIPVlan(t *testing.T) {
	for _, mode := range []netlink.IPVlanMode{netlink.IPVLAN_MODE_L2, netlink.IPVLAN_MODE_L3, netlink.IPVLAN_MODE_L3S} {
		hosts := labtest.Pair(t)
		for i, host := range []*lab.Namespace{hosts.A, hosts.B} {
			child := attrs("ipvl0", 1500)
			child.ParentIndex = eth0(t, host).Attrs().Index
			check(t, host.Netlink().LinkAdd(&netlink.IPVlan{LinkAttrs: child, Mode: mode}))
			check(t, host.Netlink().LinkSetUp(linkNamed(t, host, "ipvl0")))
			check(t, host.AddAddress("ipvl0", fmt.Sprintf("10.98.0.%d/24", i+1)))
		}
		if mode != netlink.IPVLAN_MODE_L2 {
			_, err := Open("ipvl0", InNamespace(hosts.A.Path()), WithNetwork(NetworkXDP))
			refused(t, err, verbs.ErrUnsupported, "ipvl0 is an ipvlan of mode l3")
			continue
		}
		l := &stations{hosts, openNamed(t, hosts.A, "ipvl0"), openNamed(t, hosts.B, "ipvl0")}
		l.bothWays(t, "10.98.0.1", "10.98.0.2", 512)
	}
}
