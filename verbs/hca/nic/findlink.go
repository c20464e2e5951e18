// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// findLink finds the interface and, for a VLAN, the one below it.
func (b *builder) findLink() (err error) {
	if b.link, err = b.netlink.LinkByName(b.name); err != nil {
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return fmt.Errorf("%w: no interface %q in this network namespace; ip link shows what there is", unix.ENODEV, b.name)
		}
		return err
	}
	b.base = b.link
	if vlan, ok := b.link.(*netlink.Vlan); ok {
		return b.findBase(vlan)
	}
	return nil
}

// findBase finds the interface below a VLAN. It rejects one in another namespace, since its index could be that of
// another interface here.
func (b *builder) findBase(vlan *netlink.Vlan) (err error) {
	if vlan.VlanProtocol != netlink.VLAN_PROTOCOL_8021Q {
		return fmt.Errorf("%w: the tags of %s are %v, not 802.1Q", verbs.ErrUnsupported, b.name, vlan.VlanProtocol)
	}
	if vlan.NetNsID >= 0 {
		return fmt.Errorf("%w: the interface below VLAN %s, where XDP runs, is in another network namespace; open it there", verbs.ErrUnsupported, b.name)
	}
	if b.base, err = b.netlink.LinkByIndex(vlan.ParentIndex); err != nil {
		return fmt.Errorf("interface below VLAN %s: %w", b.name, err)
	}
	if _, nested := b.base.(*netlink.Vlan); nested {
		return fmt.Errorf("%w: %s is a VLAN in a VLAN", verbs.ErrUnsupported, b.name)
	}
	b.vlan = uint16(vlan.VlanId)
	return nil
}

// checkLink rejects unsuitable interfaces, before any change.
func (b *builder) checkLink() error {
	attrs := b.link.Attrs()
	switch {
	case attrs.RawFlags&unix.IFF_LOOPBACK != 0:
		return fmt.Errorf("%w: %s is a loopback interface: XDP does not see its packets; a device reaches its own addresses without it", verbs.ErrUnsupported, b.name)
	case attrs.EncapType != "ether":
		return fmt.Errorf("%w: %s is not an Ethernet interface but %s", verbs.ErrUnsupported, b.name, attrs.EncapType)
	case attrs.RawFlags&unix.IFF_UP == 0:
		return fmt.Errorf("%w: %s is down; ip link set dev %[2]s up", unix.ENETDOWN, b.name)
	}
	if err := b.checkKind(); err != nil {
		return err
	}
	b.chooseBase()
	return b.fitMTU(attrs.MTU)
}
