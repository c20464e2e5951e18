// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// GRHLen is the length of the GRH at the start of a datagram's receive buffer, in bytes, for both IPv4 and IPv6.
const GRHLen = 40

// GRH is a view of the 40 bytes at the start of a datagram's receive buffer. In RoCEv2 they hold
// the IP header as it was received: an IPv6 header fills them; an IPv4 header is in bytes 20 to 39,
// after 20 zero bytes (IBA A17.4.5.1).
type GRH []byte

const grhIPv4 = GRHLen - IPv4Len

// PutGRH writes the packet's GRH.
func (p *Packet) PutGRH(grh *[GRHLen]byte) {
	if p.v6 {
		*grh = [GRHLen]byte(p.frame[p.ip : p.ip+IPv6Len])
		return
	}
	*(*[grhIPv4]byte)(grh[:grhIPv4]) = [grhIPv4]byte{}
	*(*[IPv4Len]byte)(grh[grhIPv4:]) = [IPv4Len]byte(p.frame[p.ip : p.ip+IPv4Len])
}

// IPVersion returns 4 or 6, or 0 if the bytes are neither. With IPv4 the first 20 bytes may have any content. If they
// look like an IPv6 header, the header is IPv4 only if its checksum is correct (as in the kernel's
// ib_get_rdma_header_version).
func (g GRH) IPVersion() int {
	if len(g) < GRHLen {
		return 0
	}
	ip := IPv4(g[grhIPv4:GRHLen])
	switch {
	case g[0]>>4 != 6 && ip[ipv4VersionLength]>>4 == 4:
		return 4
	case g[0]>>4 != 6:
		return 0
	case ip[ipv4VersionLength] == ipv4NoOptions && ip.checksumRight():
		return 4
	}
	return 6
}

// SGID returns the sender's address; zero if the bytes contain no IP header.
func (g GRH) SGID() GID {
	source, _ := g.Addresses()
	return source
}

// DGID returns the destination address of the packet; zero if the bytes contain no IP header.
func (g GRH) DGID() GID {
	_, dest := g.Addresses()
	return dest
}

// Addresses returns SGID and DGID, faster than two calls.
func (g GRH) Addresses() (source, dest GID) {
	switch g.IPVersion() {
	case 4:
		ip := IPv4(g[grhIPv4:GRHLen])
		return ip.source(), ip.destination()
	case 6:
		return IPv6(g).source(), IPv6(g).destination()
	}
	return source, dest
}

// TrafficClass returns DSCP and ECN: the TOS of IPv4, the traffic class of IPv6.
func (g GRH) TrafficClass() uint8 {
	switch g.IPVersion() {
	case 4:
		return g[grhIPv4+ipv4TOS]
	case 6:
		return uint8(binary.BigEndian.Uint16(g) >> 4)
	}
	return 0
}

// FlowLabel returns the flow label of IPv6, 20 bits; 0 over IPv4.
func (g GRH) FlowLabel() uint32 {
	if g.IPVersion() != 6 {
		return 0
	}
	return binary.BigEndian.Uint32(g) & flowLabelMask
}

// HopLimit returns the hop limit or TTL of the packet on arrival.
func (g GRH) HopLimit() uint8 {
	switch g.IPVersion() {
	case 4:
		return g[grhIPv4+ipv4TTL]
	case 6:
		return g[ipv6HopLimit]
	}
	return 0
}
