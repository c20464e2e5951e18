// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
)

// VLAN adds a VLAN interface to a link, with a name such as "eth0.42", and returns when it is up. The kernel
// needs module 8021q.
func (ns *Namespace) VLAN(ifname string, id int) (name string, err error) {
	name = fmt.Sprintf("%s.%d", ifname, id)
	index, err := ns.Index(ifname)
	if err != nil {
		return "", err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex = name, index
	if err := ns.nl.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: id, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q}); err != nil {
		return "", fmt.Errorf("VLAN %s in %s: %w", name, ns.name, err)
	}
	if err := ns.bringUp(name); err != nil {
		return "", err
	}
	return name, ns.waitReady(name)
}

// TagInFrame makes a link put VLAN tags into sent frames, as on a wire. By default a veth keeps the tag in
// metadata (offload): sockets at the other end see it, but its XDP program does not.
func (ns *Namespace) TagInFrame(ifname string) error {
	err := ns.Do(func() error {
		tool, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer tool.Close()
		return tool.Change(ifname, map[string]bool{"tx-vlan-hw-insert": false})
	})
	if err != nil {
		return fmt.Errorf("VLAN offload of %s in %s: %w", ifname, ns.name, err)
	}
	return nil
}

// CarryVLANs makes the bridge a switch for hosts with VLANs: its ports put the tags into the frames. Snooping
// is disabled, so groups are flooded, because the bridge snoops and queries only untagged packets.
func (b *Bridge) CarryVLANs(ports ...string) error {
	for _, port := range ports {
		if err := b.TagInFrame(port); err != nil {
			return err
		}
	}
	return b.Do(func() error {
		link, err := b.nl.LinkByName(bridgeName)
		if err != nil {
			return err
		}
		return setBridge(link, map[int][]byte{nl.IFLA_BR_MCAST_QUERIER: {0}, nl.IFLA_BR_MCAST_SNOOPING: {0}})
	})
}
