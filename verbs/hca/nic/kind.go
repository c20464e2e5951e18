// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
)

// The kind of interface determines how a card can run on it:
//
//	NIC, veth, tap, macvlan, bridge    as it is
//	VLAN (802.1Q)                      XDP on the interface below
//	bond, team                         generic XDP: native runs on the slaves, whose frames no
//	                                   socket of the bond gets
//	VLAN on a bond or team             generic XDP on the VLAN's own interface: the bond has
//	                                   taken the tag out before generic XDP runs on it
//	slave of a bond or team            refused: the bond has the addresses
//	port of a bridge, and the like     a warning: addresses and neighbours are the bridge's
//	ipvlan l3, l3s                     refused: it has no neighbours and takes no frames
//
// checkKind rejects unsupported kinds of interfaces and modes.
func (b *builder) checkKind() error {
	if l3, ok := ipvlanMode(b.link); ok {
		return fmt.Errorf("%w: %s is an ipvlan of mode %s, which has neither neighbours nor frames of its own; "+
			"use one of mode l2, a macvlan, or the interface below it", verbs.ErrUnsupported, b.name, l3)
	}
	if isAggregate(b.base) && b.modes.xdp == bpf.Native {
		return fmt.Errorf("%w: %s is a %s: native XDP runs on its slaves, whose frames no socket of %[2]s gets; request generic XDP",
			bpf.ErrNoNative, b.base.Attrs().Name, b.base.Type())
	}
	return b.checkMaster()
}

// ipvlanMode returns the mode of an ipvlan that routes; routes is false for other interfaces.
func ipvlanMode(link netlink.Link) (mode string, routes bool) {
	ipvlan, ok := link.(*netlink.IPVlan)
	if tap, isTap := link.(*netlink.IPVtap); isTap {
		ipvlan, ok = &tap.IPVlan, true
	}
	if !ok {
		return "", false
	}
	switch ipvlan.Mode {
	case netlink.IPVLAN_MODE_L3:
		return "l3", true
	case netlink.IPVLAN_MODE_L3S:
		return "l3s", true
	}
	return "", false
}

// isAggregate reports whether an interface is a bond or team, whose frames come from its slaves.
func isAggregate(link netlink.Link) bool {
	return link.Type() == "bond" || link.Type() == "team"
}

// ErrSlave marks an interface that cannot have a card, neither with XDP nor with UDP sockets.
var ErrSlave = fmt.Errorf("%w: the interface belongs to a master", verbs.ErrUnsupported)

// checkMaster rejects a slave of a bond or team, and warns of other interfaces with a master.
func (b *builder) checkMaster() error {
	index := b.base.Attrs().MasterIndex
	if index == 0 {
		return nil
	}
	master, err := b.netlink.LinkByIndex(index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil // it was removed meanwhile, or is in another namespace
	}
	if err != nil {
		return fmt.Errorf("master of %s: %w", b.base.Attrs().Name, err)
	}
	return b.judgeMaster(master)
}

func (b *builder) judgeMaster(master netlink.Link) error {
	name, kind, of := b.base.Attrs().Name, master.Type(), master.Attrs().Name
	switch {
	case isAggregate(master):
		return fmt.Errorf("%w: %s is a slave of the %s %s, which has the addresses and sends and receives through it; open %[4]s",
			ErrSlave, name, kind, of)
	case kind == "vrf": // the interface keeps its own addresses and neighbours
	default:
		b.config.Log.Warn("the interface is a port of another: the host's addresses, neighbours and memberships are its master's; open the master, or use this one for receiving only",
			"device", name, "master", of, "kind", kind)
	}
	return nil
}

// chooseBase determines on which interface XDP runs, and whether it must be generic.
func (b *builder) chooseBase() {
	if !isAggregate(b.base) {
		return
	}
	b.generic = fmt.Errorf("%s is a %s: native XDP would run on its slaves, whose frames no socket of %[1]s gets",
		b.base.Attrs().Name, b.base.Type())
	if b.vlan != 0 {
		b.base, b.vlan = b.link, 0
	}
}
