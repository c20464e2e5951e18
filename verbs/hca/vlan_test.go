// SPDX-License-Identifier: Apache-2.0

//go:build vlan

package hca

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The hosts of labtest's picture with a VLAN on their wire:
//
//	A eth0.42 10.42.0.1/24 fd42::1/64 ── eth0.42 10.42.0.2/24 fd42::2/64 B
const (
	vlanID    = 42
	vlanName  = "eth0.42"
	otherVLAN = 43
)

// addVLAN adds the VLAN's interface to both hosts.
func addVLAN(t *testing.T, hosts *labtest.PairLab) {
	t.Helper()
	for i, host := range []*lab.Namespace{hosts.A, hosts.B} {
		_, err := host.VLAN("eth0", vlanID)
		check(t, err)
		check(t, host.AddAddress(vlanName, fmt.Sprintf("10.42.0.%d/24", i+1)))
		if linkNamed(t, host, vlanName).Attrs().MTU >= 1280 {
			check(t, host.AddAddress(vlanName, fmt.Sprintf("fd42::%d/64", i+1)))
		}
	}
}

func linkNamed(t *testing.T, host *lab.Namespace, name string) netlink.Link {
	t.Helper()
	link, err := host.Netlink().LinkByName(name)
	check(t, err)
	return link
}

// openVLAN opens the VLAN's interface until the end of the test.
func openVLAN(t *testing.T, host *lab.Namespace, options ...Option) *Card {
	t.Helper()
	d, err := Open(vlanName, append(options, InNamespace(host.Path()), WithStateDir(t.TempDir()))...)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	return d
}

func newVLANLab(t *testing.T, hosts *labtest.PairLab) *stations {
	t.Helper()
	addVLAN(t, hosts)
	return &stations{hosts, newStation(t, openVLAN(t, hosts.A)), newStation(t, openVLAN(t, hosts.B))}
}

// Every byte arrives, and the XDP program is on the interface below.
func TestVlanBothWays(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	l.bothWays(t, "10.42.0.1", "10.42.0.2", 1024)
	l.bothWays(t, "fd42::1", "fd42::2", 1024)
	for _, s := range []*station{l.a, l.b} {
		got := counts(t, s.device)
		if got["redirected"] == 0 || got["redirected"] != got["delivered"] || len(dropsOf(s.device)) != 0 {
			t.Errorf("counters %v", got)
		}
	}
	if attachedProgram(t, l.A, "eth0") == 0 || attachedProgram(t, l.A, vlanName) != 0 {
		t.Error("the program is not on eth0")
	}
}

// The tag does not reduce the interface's MTU.
func TestVlanMTU(t *testing.T) {
	for _, row := range []struct{ link, rdma int }{{1104, 1024}, {2128, 2048}, {4176, 4096}, {9000, 4096}} {
		t.Run(fmt.Sprint(row.link), func(t *testing.T) {
			l := newVLANLab(t, pairOf(t, row.link))
			port, err := l.a.ctx.QueryPort(1)
			check(t, err)
			if want := carried(t, row.rdma); port.ActiveMTU.Bytes() != want {
				t.Errorf("RDMA MTU %v, want %d", port.ActiveMTU, want)
			}
			l.bothWays(t, "10.42.0.1", "10.42.0.2", port.ActiveMTU.Bytes())
		})
	}
}

// An interface has one XDP program, and so one card: the VLAN's, another VLAN's, or its own. The error names the
// existing one.
func TestVlanBesideItsParent(t *testing.T) {
	hosts := labtest.Pair(t)
	addVLAN(t, hosts)
	other, err := hosts.A.VLAN("eth0", otherVLAN)
	check(t, err)
	for _, order := range [][]string{{vlanName, "eth0"}, {"eth0", vlanName}, {vlanName, other}} {
		first, err := Open(order[0], InNamespace(hosts.A.Path()))
		check(t, err)
		untouched(t, hosts.A, "eth0", func() {
			_, err := Open(order[1], InNamespace(hosts.A.Path()))
			refused(t, err, unix.EBUSY, "open "+order[1], "program id", "roced_steer", "on eth0", "held by process")
		})
		check(t, first.Close())
	}
}

// If the VLAN's interface is deleted the card fails, and the interface below is free again.
func TestVlanDeleted(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	deviceFails(t, l.a, l.b, "10.42.0.2", func() { check(t, l.A.Netlink().LinkDel(linkNamed(t, l.A, vlanName))) })
	open(t, l.A)
	l.b.noEvent()
}

// Deleting the interface below deletes its VLANs.
func TestVlanParentDeleted(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	deviceFails(t, l.a, l.b, "10.42.0.2", func() { check(t, l.A.Netlink().LinkDel(eth0(t, l.A))) })
	l.b.awaitFatal() // the other end of a pair is deleted too
}

// When the interface below goes down and up, so does the port.
func TestVlanParentDown(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	check(t, l.A.Netlink().LinkSetDown(eth0(t, l.A)))
	l.a.awaitEvent(portErr)
	l.b.awaitEvent(portErr)
	check(t, l.A.Netlink().LinkSetUp(eth0(t, l.A)))
	l.a.awaitEvent(portActive)
	l.b.awaitEvent(portActive)
	l.bothWays(t, "10.42.0.1", "10.42.0.2", 128)
}

// Interfaces whose tags, or whose interface below, are not supported are refused without any changes.
func TestVlanRefused(t *testing.T) {
	hosts := labtest.Pair(t)
	addVLAN(t, hosts)
	inner, err := hosts.A.VLAN(vlanName, otherVLAN)
	check(t, err)
	service := attrs("service0", 1500)
	service.ParentIndex = eth0(t, hosts.A).Attrs().Index
	addLink(t, hosts.A, &netlink.Vlan{LinkAttrs: service, VlanId: 7, VlanProtocol: netlink.VLAN_PROTOCOL_8021AD}, true)
	away := labtest.New(t, "hca-away")
	addLink(t, away, &netlink.Dummy{LinkAttrs: attrs("eth0", 1500)}, true)
	check(t, hosts.B.Netlink().LinkSetNsFd(linkNamed(t, hosts.B, vlanName), away.FD()))
	check(t, away.Netlink().LinkSetUp(linkNamed(t, away, vlanName)))
	for _, row := range []struct {
		host *lab.Namespace
		name string
		says string
	}{
		{hosts.A, inner, "VLAN in a VLAN"},
		{hosts.A, "service0", "802.1ad"},
		{away, vlanName, "another network namespace"},
	} {
		untouched(t, row.host, "eth0", func() {
			_, err := Open(row.name, InNamespace(row.host.Path()), WithNetwork(NetworkXDP))
			refused(t, err, unix.EOPNOTSUPP, row.says)
		})
	}
}

// The addresses of the VLAN's interface are the card's; those of the interface below are not.
func TestVlanGIDs(t *testing.T) {
	l := newVLANLab(t, labtest.Pair(t))
	gids, err := l.a.ctx.QueryGIDTable(1)
	check(t, err)
	var own []netip.Addr
	for _, entry := range gids {
		own = append(own, entry.GID.Addr())
	}
	for _, want := range []string{"10.42.0.1", "fd42::1"} {
		if !slices.Contains(own, address(want)) {
			t.Errorf("want %s among the addresses %v", want, own)
		}
	}
	if slices.Contains(own, address("10.77.0.1")) {
		t.Errorf("got addresses %v, which include that of eth0", own)
	}
	_, err = l.a.pd.CreateAH(context.Background(), l.a.route("10.77.0.2"))
	refused(t, err, verbs.ErrUnreachable, "through "+vlanName)
}
