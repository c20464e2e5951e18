// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"encoding/binary"
	"net/netip"
)

const (
	ipv4Len = 20
	ipv6Len = 40
)

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// packet is the parsed part of an IP packet's header.
type packet struct {
	protocol uint16 // EtherType
	from, to netip.Addr
}

// parsePacket parses an IP packet, whose length must match its header.
func parsePacket(p []byte) (packet, drop) {
	if len(p) == 0 {
		return packet{}, dropNotIP
	}
	switch p[0] >> 4 {
	case 4:
		return parseIPv4(p)
	case 6:
		return parseIPv6(p)
	}
	return packet{}, dropNotIP
}

func parseIPv4(p []byte) (packet, drop) {
	if len(p) < ipv4Len {
		return packet{}, dropLength
	}
	header := int(p[0]&15) * 4
	if header < ipv4Len || header > len(p) || int(binary.BigEndian.Uint16(p[2:])) != len(p) {
		return packet{}, dropLength
	}
	return packet{typeIPv4, netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))}, dropNone
}

func parseIPv6(p []byte) (packet, drop) {
	if len(p) < ipv6Len || int(binary.BigEndian.Uint16(p[4:])) != len(p)-ipv6Len {
		return packet{}, dropLength
	}
	from, to := netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	if from.Is4In6() || to.Is4In6() {
		return packet{}, dropSource
	}
	return packet{typeIPv6, from, to}, dropNone
}

// forAll reports whether a packet is for several hosts.
func (p *packet) forAll() bool { return p.to.IsMulticast() || p.to == broadcast }

// checkArrived rejects invalid packets of neighbours: with a source address that no host can have, or that this host
// has, and unicast packets in the group.
func (p *packet) checkArrived(protocol uint16, inGroup bool, isOwn func(netip.Addr) bool) drop {
	switch {
	case p.protocol != protocol:
		return dropNotIP
	case p.from.IsMulticast() || p.from.IsLoopback() || p.from == broadcast || isOwn(p.from):
		return dropSource
	case p.from.IsUnspecified() && !p.forAll():
		return dropSource
	case p.to.IsLoopback() || p.to.IsUnspecified():
		return dropDestination
	case inGroup && !p.forAll():
		return dropUnicastInGroup
	}
	return dropNone
}
