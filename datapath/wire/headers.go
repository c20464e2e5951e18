// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Lengths of Ethernet headers, in bytes, and EtherTypes.
const (
	EthernetLen = 14
	VLANLen     = 4

	EtherTypeIPv4 = 0x0800
	EtherTypeIPv6 = 0x86DD
	EtherTypeVLAN = 0x8100 // 802.1Q
	EtherTypeQinQ = 0x88A8 // 802.1ad

	ethDestination    = 0  // 6 bytes
	ethSource         = 6  // 6 bytes
	ethType           = 12 // 2 bytes
	vlanIDMask        = 0x0FFF
	vlanPriorityShift = 5 // in the tag's first byte
)

// IPv4 is a view of an IPv4 header without options (RFC 791).
type IPv4 []byte

// IPv4Len is the length of the header without options, in bytes.
const IPv4Len = 20

const (
	ipv4VersionLength  = 0  // version in the high nibble, header length in words in the low one
	ipv4TOS            = 1  // DSCP and ECN
	ipv4TotalLength    = 2  // 2 bytes
	ipv4Identification = 4  // 2 bytes
	ipv4Fragment       = 6  // 2 bytes: flags and offset
	ipv4TTL            = 8  // 1 byte
	ipv4Protocol       = 9  // 1 byte
	ipv4Checksum       = 10 // 2 bytes
	ipv4Source         = 12 // 4 bytes
	ipv4Destination    = 16 // 4 bytes

	ipv4DontFragment = 0x4000
	ipv4FragmentMask = 0x3FFF // more fragments, and the offset
	ipv4NoOptions    = 0x45
)

func (h IPv4) totalLength() int { return int(binary.BigEndian.Uint16(h[ipv4TotalLength:])) }
func (h IPv4) fragmented() bool {
	return binary.BigEndian.Uint16(h[ipv4Fragment:])&ipv4FragmentMask != 0
}
func (h IPv4) source() GID         { return mapped(h[ipv4Source : ipv4Source+4]) }
func (h IPv4) destination() GID    { return mapped(h[ipv4Destination : ipv4Destination+4]) }
func (h IPv4) checksumRight() bool { return onesComplementSum(h[:IPv4Len]) == 0xFFFF }

func mapped(address []byte) GID {
	return GID{10: 0xff, 11: 0xff, 12: address[0], 13: address[1], 14: address[2], 15: address[3]}
}

// onesComplementSum returns the sum of RFC 1071 over a 20-byte header, folded to 16 bits.
func onesComplementSum(h []byte) uint16 {
	_ = h[19]
	sum := uint64(binary.BigEndian.Uint32(h[0:])) + uint64(binary.BigEndian.Uint32(h[4:])) +
		uint64(binary.BigEndian.Uint32(h[8:])) + uint64(binary.BigEndian.Uint32(h[12:])) +
		uint64(binary.BigEndian.Uint32(h[16:]))
	return fold(sum)
}

// fold reduces a sum of big-endian words to 16 bits, adding the carries.
func fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xFFFFFFFF
	sum = sum>>16 + sum&0xFFFF
	sum = sum>>16 + sum&0xFFFF
	sum = sum>>16 + sum&0xFFFF
	return uint16(sum)
}

// IPv6 is a view of an IPv6 header (RFC 8200).
type IPv6 []byte

// IPv6Len is the length of the fixed header, in bytes.
const IPv6Len = 40

const (
	ipv6VersionClassFlow = 0  // 4 bytes: version 4 bits, traffic class 8, flow label 20
	ipv6PayloadLength    = 4  // 2 bytes
	ipv6NextHeader       = 6  // 1 byte
	ipv6HopLimit         = 7  // 1 byte
	ipv6Source           = 8  // 16 bytes
	ipv6Destination      = 24 // 16 bytes

	ipv6NextFragment = 44
)

func (h IPv6) payloadLength() int { return int(binary.BigEndian.Uint16(h[ipv6PayloadLength:])) }
func (h IPv6) source() GID        { return GID(h[ipv6Source : ipv6Source+16]) }
func (h IPv6) destination() GID   { return GID(h[ipv6Destination : ipv6Destination+16]) }

const (
	protocolUDP = 17

	// UDPLen is the length of a UDP header, in bytes (RFC 768).
	UDPLen = 8
	// UDPPort is RoCEv2's destination port (IBA A17.3.1).
	UDPPort = 4791

	udpSource      = 0 // 2 bytes: entropy, ignored on receive
	udpDestination = 2 // 2 bytes
	udpLength      = 4 // 2 bytes: header, payload and ICRC
	udpChecksum    = 6 // 2 bytes: sent as 0, ignored on receive, because the ICRC is stronger
)

// BTH is a view of a base transport header (IBA 9.2).
type BTH []byte

// BTHLen is the length of the header, in bytes.
const BTHLen = 12

const (
	bthOpcode = 0 // 1 byte
	bthFlags  = 1 // SE, MigReq, PadCnt, TVer
	bthPKey   = 2 // 2 bytes
	bthFECN   = 4 // FECN, BECN and reserved bits; not covered by the ICRC
	bthDestQP = 5 // 3 bytes
	bthAckReq = 8 // AckReq, 7 reserved bits; on in-memory networks these are the number of packets minus one
	bthPSN    = 9 // 3 bytes

	bthSolicited    = 0x80
	bthMigReq       = 0x40
	bthPadShift     = 4
	bthPadMask      = 0x30
	bthVersionMask  = 0x0F
	bthAckRequested = 0x80
	bthPacketsMask  = 0x7F
	bthBECN         = 0x40
)

// Opcode returns the operation. It determines the headers that follow.
func (h BTH) Opcode() Opcode { return Opcode(h[bthOpcode]) }

// Solicited returns the solicited event bit.
func (h BTH) Solicited() bool { return h[bthFlags]&bthSolicited != 0 }

// MigReq returns the migration bit. RDMA NICs send 1, Soft-RoCE sends 0; both are accepted.
func (h BTH) MigReq() bool { return h[bthFlags]&bthMigReq != 0 }

// PadCount returns the number of bytes, 0 to 3, between payload and ICRC.
func (h BTH) PadCount() int { return int(h[bthFlags]&bthPadMask) >> bthPadShift }

// Version returns the transport header version. The only defined one is 0.
func (h BTH) Version() int { return int(h[bthFlags] & bthVersionMask) }

// PKey returns the sender's partition key.
func (h BTH) PKey() PKey { return PKey(binary.BigEndian.Uint16(h[bthPKey:])) }

// DestQP returns the destination queue pair; QPNMulticast for packets to a group.
func (h BTH) DestQP() QPN { return QPN(uint24(h[bthDestQP:])) }

// AckReq reports whether the sender requests an acknowledgement. It has no meaning for datagrams.
func (h BTH) AckReq() bool { return h[bthAckReq]&bthAckRequested != 0 }

// Packets returns the number of packets that this packet stands for, 1 to 128: more than 1 for a long packet, which has
// as many PSNs. It is valid only on in-memory networks; on others the bits are reserved.
func (h BTH) Packets() uint32 { return uint32(h[bthAckReq]&bthPacketsMask) + 1 }

// PSN returns the packet sequence number. Receivers of datagrams ignore it.
func (h BTH) PSN() PSN { return PSN(uint24(h[bthPSN:])) }

// DETH is a view of a datagram extended transport header (IBA 9.3.1).
type DETH []byte

// DETHLen is the length of the header, in bytes.
const DETHLen = 8

const (
	dethQKey  = 0 // 4 bytes
	dethSrcQP = 5 // 3 bytes, after a reserved one
)

// QKey returns the Q_Key, which must be equal to that of the receiving queue pair.
func (h DETH) QKey() QKey { return QKey(binary.BigEndian.Uint32(h[dethQKey:])) }

// SrcQP returns the queue pair that sent the datagram.
func (h DETH) SrcQP() QPN { return QPN(uint24(h[dethSrcQP:])) }

// ImmLen and ICRCLen are the lengths of immediate data and of the ICRC, in bytes.
const (
	ImmLen  = 4
	ICRCLen = 4
)

func uint24(b []byte) uint32 {
	_ = b[2]
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}
