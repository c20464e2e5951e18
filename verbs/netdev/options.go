// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/verbs"
)

// Options are the options of a device. The zero value suits most programs.
type Options struct {
	// Interface is used instead of a new TUN. The device closes it.
	Interface Interface

	// Addresses are assigned to the TUN when it is up, with their networks' lengths. Others may be added and removed at
	// run time (ip address): the device detects changes within a second.
	Addresses []netip.Prefix

	// Group is the group for multicast, broadcast and address queries. The zero Addr means one derived from the id:
	// 239.192.0.0 + id if the card has an IPv4 address, else ff15::7b6e:0 + id.
	Group netip.Addr

	// Source is the source address on the card; the zero Addr means one that matches the destination.
	Source netip.Addr

	// MTU is that of the interface, in bytes, 68 to 65472 and at most 16 datagrams. 0 means the capacity of one
	// datagram, but at least 1280, following the port's MTU.
	MTU int

	// MaxNeighbours is the maximum number of known peers (default 1024). The least recently used one is evicted.
	MaxNeighbours int

	// RecvDepth and SendDepth are the numbers of buffers of one datagram each (defaults 1024 and 512).
	RecvDepth, SendDepth int
}

const (
	leastMTU   = 68   // RFC 791
	ipv6MTU    = 1280 // RFC 8200
	defaultMax = 1024 // neighbours
)

func (o *Options) check() error {
	switch {
	case o.MTU != 0 && (o.MTU < leastMTU || o.MTU > longestPacket):
		return fmt.Errorf("%w: MTU %d; valid are %d to %d bytes, or 0", verbs.ErrInvalid, o.MTU, leastMTU, longestPacket)
	case o.Interface != nil && len(o.Addresses) > 0:
		return fmt.Errorf("%w: Addresses require a TUN; an Interface has its own addresses", verbs.ErrInvalid)
	case slices.ContainsFunc(o.Addresses, func(p netip.Prefix) bool { return !p.IsValid() || !isHost(p.Addr()) }):
		return fmt.Errorf("%w: Addresses %v; each must be a host address with a length, such as 192.168.7.1/24", verbs.ErrInvalid, o.Addresses)
	case o.MaxNeighbours < 0:
		return fmt.Errorf("%w: MaxNeighbours is negative", verbs.ErrInvalid)
	case o.Group.IsValid() && !o.Group.IsMulticast():
		return fmt.Errorf("%w: Group %v is not multicast", verbs.ErrInvalid, o.Group)
	}
	return nil
}

// groupOf returns the group of a network.
func groupOf(c *verbs.Context, id uint16) (netip.Addr, error) {
	gids, err := c.QueryGIDTable(port)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, entry := range gids {
		if entry.GID.Addr().Is4() {
			return netip.AddrFrom4([4]byte{239, 192, byte(id >> 8), byte(id)}), nil
		}
	}
	return netip.AddrFrom16([16]byte{0xff, 0x15, 12: 0x7b, 13: 0x6e, 14: byte(id >> 8), 15: byte(id)}), nil
}
