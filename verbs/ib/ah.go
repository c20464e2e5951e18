// SPDX-License-Identifier: Apache-2.0

package ib

import (
	"net/netip"

	"github.com/roced/roced/datapath/wire"
)

// GlobalRoute is the route of a packet (ibv_global_route).
type GlobalRoute struct {
	DGID         wire.GID
	SGIDIndex    int
	FlowLabel    uint32 // 20 bits; also determines the UDP source port
	HopLimit     uint8  // 0 means 64
	TrafficClass uint8
}

// AHAttr describes an address (ibv_ah_attr). On Ethernet it consists of the route.
type AHAttr struct {
	GRH  GlobalRoute
	Port uint8 // always 1
	SL   uint8 // service level, 0 to 7; does not affect the Ethernet priority of frames
}

// GIDs returns the source and destination of a packet whose network header is of this type. The header precedes a
// datagram in its receive buffer: an IPv4 header is in the last 20 bytes. ok is false for an unknown type and for a
// short header.
func (n NetworkType) GIDs(header wire.GRH) (sgid, dgid wire.GID, ok bool) {
	if len(header) < wire.GRHLen {
		return sgid, dgid, false
	}
	switch n {
	case NetworkIPv4: // the addresses are the last 8 bytes of the header
		source, dest := [4]byte(header[wire.GRHLen-8:]), [4]byte(header[wire.GRHLen-4:])
		return wire.GIDFromAddr(netip.AddrFrom4(source)), wire.GIDFromAddr(netip.AddrFrom4(dest)), true
	case NetworkIPv6, NetworkIB, NetworkRoCEv1:
		return wire.GID(header[8:24]), wire.GID(header[24:40]), true
	}
	return sgid, dgid, false
}
