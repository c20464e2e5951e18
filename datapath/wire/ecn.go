// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Explicit congestion notification (RFC 3168): a sender marks its packets as ECN-capable, a congested queue in the
// network marks such packets, and the receiver of a marked packet notifies the sender (IBA A17.9).

// The ECN bits of TOS and traffic class.
const (
	ecnBits  = 3
	ecnECT0  = 2 // ECN-capable
	ecnCE    = 3 // congestion experienced
	ecnShift = 4 // IPv6: of the traffic class in the header's second byte
)

// cnpTrafficClass is the traffic class of CNPs: DSCP 48, as in NICs. Networks are configured to send such packets past
// the congested queues.
const cnpTrafficClass = 48 << 2

// Marked reports whether a queue in the network has marked the packet.
func (p *Packet) Marked() bool {
	if p.v6 {
		return p.frame[p.ip+1]>>ecnShift&ecnBits == ecnCE
	}
	return p.frame[p.ip+ipv4TOS]&ecnBits == ecnCE
}

// Mark marks a frame as a congested queue does, if it is ECN-capable, and reports whether it is.
func Mark(frame []byte) bool {
	kind, ip := etherType(frame)
	switch {
	case kind == EtherTypeIPv6 && len(frame) >= ip+IPv6Len && frame[ip+1]>>ecnShift&ecnBits != 0:
		frame[ip+1] |= ecnCE << ecnShift
		return true
	case kind == EtherTypeIPv4 && len(frame) >= ip+IPv4Len && frame[ip+ipv4TOS]&ecnBits != 0:
		h := frame[ip : ip+IPv4Len]
		h[ipv4TOS] |= ecnCE
		h[ipv4Checksum], h[ipv4Checksum+1] = 0, 0
		binary.BigEndian.PutUint16(h[ipv4Checksum:], ^onesComplementSum(h))
		return true
	}
	return false
}

// ECNCapable returns a copy of the template whose packets are ECN-capable. A traffic class that already has ECN bits is
// not changed.
func (t *Template) ECNCapable() Template {
	if t.tos&ecnBits != 0 {
		return *t
	}
	return t.withTrafficClass(t.tos | ecnECT0)
}

// withTrafficClass returns a copy of the template with another traffic class.
func (t *Template) withTrafficClass(class uint8) Template {
	one := *t
	one.partial += uint64(class) + uint64(0xFFFF-uint16(t.tos)) // subtract the old class, in one's complement
	one.first = t.first&^(0xFF<<52) | uint64(class)<<52
	one.tos = class
	return one
}

// SealCNP writes a congestion notification packet, which has no payload, and returns the length of the frame.
func (t *Template) SealCNP(frame []byte, source, dest QPN, pkey PKey, id uint16) int {
	urgent := t.withTrafficClass(cnpTrafficClass)
	h := Transport{Opcode: OpcodeCNP, SourceQP: source, DestQP: dest, PKey: pkey}
	payload := urgent.PayloadOffsetOf(OpcodeCNP)
	frame = urgent.begin(frame, payload, 0, id, urgent.sourcePort(source, dest))
	h.put(frame[t.bth:payload:payload], 0)
	clear(frame[t.bth+BTHLen : payload]) // 16 reserved bytes
	n := urgent.finish(frame)
	frame[t.bth+bthFECN] = bthBECN
	return n
}
