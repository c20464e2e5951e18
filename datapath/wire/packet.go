// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
)

// Fault is the reason why a frame is not a valid RoCEv2 packet.
type Fault uint8

// The faults, in the order in which Parse checks for them.
const (
	FaultNone       Fault = iota
	FaultNotRoCE          // not IP, not UDP, or another port
	FaultOptions          // IPv4 options, which RoCEv2 does not use
	FaultFragment         // IP fragment; RoCEv2 packets are not fragmented
	FaultTruncated        // the frame ends before the packet does
	FaultLength           // IP and UDP lengths disagree, or are too short for the headers
	FaultIPChecksum       // IPv4 header checksum wrong
	FaultVersion          // transport header version other than 0
	FaultOpcode           // undefined opcode
	FaultPad              // pad count and length disagree
)

var faultNames = [...]string{"none", "not_roce", "ip_options", "fragment", "truncated", "length",
	"ip_checksum", "transport_version", "unknown_opcode", "pad"}

// String returns the name of the fault's drop counter.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// Packet is a parsed view of a frame. It borrows the frame. No accessor fails after a Parse that returned FaultNone;
// otherwise accessors may panic.
type Packet struct {
	frame   []byte // ends with the ICRC
	ip      int    // offset of the IP header, which is the GRH
	bth     int    // offset of the BTH
	payload int    // offset of the payload
	end     int    // offset of the end of the payload; pad and ICRC follow
	headers HeaderMask
	v6      bool
	sum     uint32 // the ICRC computed by CheckICRC
}

// Parse checks a frame and fills p. A frame that it accepts has consistent IP and UDP headers, a known opcode, all
// headers of that opcode, and a valid pad count. It does not check the ICRC.
func Parse(frame []byte, p *Packet) Fault {
	etherType, ip := etherType(frame)
	switch etherType {
	case EtherTypeIPv4:
		return p.parseIPv4(frame, ip)
	case EtherTypeIPv6:
		return p.parseIPv6(frame, ip)
	}
	return FaultNotRoCE
}

// GuessDestQP returns the destination QP of an unparsed frame if it has no VLAN tag and the usual headers. For other
// frames it may return any number.
func GuessDestQP(frame []byte) QPN {
	bth := EthernetLen + IPv4Len + UDPLen
	if len(frame) > EthernetLen && frame[EthernetLen]>>4 == 6 {
		bth = EthernetLen + IPv6Len + UDPLen
	}
	if len(frame) < bth+BTHLen {
		return 0
	}
	return BTH(frame[bth:]).DestQP()
}

// etherType returns the EtherType after at most two VLAN tags, and the offset of the network header; zeros if the frame
// is too short.
func etherType(frame []byte) (kind uint16, next int) {
	if len(frame) < EthernetLen {
		return 0, 0
	}
	kind, next = binary.BigEndian.Uint16(frame[ethType:]), EthernetLen
	for tags := 0; tags < 2 && (kind == EtherTypeVLAN || kind == EtherTypeQinQ); tags++ {
		if len(frame) < next+VLANLen {
			return 0, 0
		}
		kind, next = binary.BigEndian.Uint16(frame[next+2:]), next+VLANLen
	}
	return kind, next
}

func (p *Packet) parseIPv4(frame []byte, ip int) Fault {
	if len(frame) < ip+IPv4Len+UDPLen {
		return FaultNotRoCE
	}
	h := IPv4(frame[ip : ip+IPv4Len])
	switch {
	case h[ipv4VersionLength]>>4 != 4 || h[ipv4Protocol] != protocolUDP:
		return FaultNotRoCE
	case h[ipv4VersionLength] != ipv4NoOptions:
		return FaultOptions
	case h.fragmented():
		return FaultFragment
	case len(frame)-ip < h.totalLength():
		return FaultTruncated
	case h.totalLength() < IPv4Len+UDPLen:
		return FaultLength
	case !h.checksumRight():
		return FaultIPChecksum
	}
	p.v6 = false
	p.ip = ip
	p.frame = frame[:ip+h.totalLength()] // Ethernet pads short frames
	return p.parseUDP(ip + IPv4Len)
}

func (p *Packet) parseIPv6(frame []byte, ip int) Fault {
	if len(frame) < ip+IPv6Len+UDPLen {
		return FaultNotRoCE
	}
	h := IPv6(frame[ip : ip+IPv6Len])
	switch {
	case h[0]>>4 != 6:
		return FaultNotRoCE
	case h[ipv6NextHeader] == ipv6NextFragment:
		return FaultFragment
	case h[ipv6NextHeader] != protocolUDP:
		return FaultNotRoCE
	case len(frame)-ip-IPv6Len < h.payloadLength():
		return FaultTruncated
	case h.payloadLength() < UDPLen:
		return FaultLength
	}
	p.v6 = true
	p.ip = ip
	p.frame = frame[:ip+IPv6Len+h.payloadLength()]
	return p.parseUDP(ip + IPv6Len)
}

// parseUDP continues at the UDP header. p.frame ends where the IP packet ends.
func (p *Packet) parseUDP(udp int) Fault {
	h := p.frame[udp : udp+UDPLen]
	if binary.BigEndian.Uint16(h[udpDestination:]) != UDPPort {
		return FaultNotRoCE
	}
	length := len(p.frame) - udp
	if int(binary.BigEndian.Uint16(h[udpLength:])) != length || length < UDPLen+BTHLen+ICRCLen {
		return FaultLength
	}
	p.bth = udp + UDPLen
	return p.parseBTH()
}

func (p *Packet) parseBTH() Fault {
	bth := p.BTH()
	if bth.Version() != 0 {
		return FaultVersion
	}
	row := &opcodes[bth[bthOpcode]]
	if row.Payload == 0 {
		return FaultOpcode
	}
	p.headers = row.Mask
	p.payload = p.bth + row.Payload
	p.end = len(p.frame) - ICRCLen - bth.PadCount()
	switch {
	case p.payload > len(p.frame)-ICRCLen:
		return FaultLength
	case p.end < p.payload || (len(p.frame)-p.bth)&3 != 0:
		return FaultPad
	case row.Mask&HeaderNoPayload != 0 && p.end != p.payload:
		return FaultLength
	}
	return FaultNone
}

// Frame returns the parsed frame, without Ethernet padding.
func (p *Packet) Frame() []byte { return p.frame }

// BTH returns the base transport header.
func (p *Packet) BTH() BTH { return BTH(p.frame[p.bth : p.bth+BTHLen : p.bth+BTHLen]) }

// Has reports whether the packet carries all headers of the set.
func (p *Packet) Has(headers HeaderMask) bool { return p.headers&headers == headers }

// DETH returns the datagram extended transport header. Call it only for packets that have HeaderDETH and do not have
// HeaderRDETH.
func (p *Packet) DETH() DETH { return DETH(p.frame[p.bth+BTHLen : p.bth+BTHLen+DETHLen]) }

// Imm returns the immediate data. Call it only for packets that have HeaderImm.
func (p *Packet) Imm() uint32 { return binary.BigEndian.Uint32(p.frame[p.payload-ImmLen:]) }

// Payload returns the payload without the pad.
func (p *Packet) Payload() []byte { return p.frame[p.payload:p.end:p.end] }

// IsIPv6 reports whether the packet has an IPv6 header; otherwise it has an IPv4 header.
func (p *Packet) IsIPv6() bool { return p.v6 }

// Addresses returns the source and destination addresses in the IP header, for fast comparisons.
func (p *Packet) Addresses() []byte {
	if p.v6 {
		return p.frame[p.ip+ipv6Source : p.ip+IPv6Len]
	}
	return p.frame[p.ip+ipv4Source : p.ip+IPv4Len]
}

// Source returns the sender's GID: the source address of the IP header.
func (p *Packet) Source() GID {
	if p.v6 {
		return IPv6(p.frame[p.ip:]).source()
	}
	return IPv4(p.frame[p.ip:]).source()
}

// Destination returns the receiver's GID: the destination address of the IP header.
func (p *Packet) Destination() GID {
	if p.v6 {
		return IPv6(p.frame[p.ip:]).destination()
	}
	return IPv4(p.frame[p.ip:]).destination()
}

// VLAN returns the VLAN identifier in the outermost VLAN tag; ok is false for untagged frames. A first tag with VLAN 0
// contains only a priority and is skipped, as in Linux.
func (p *Packet) VLAN() (id uint16, ok bool) {
	for at := EthernetLen; at < p.ip; at += VLANLen {
		if id = binary.BigEndian.Uint16(p.frame[at:]) & vlanIDMask; id != 0 || at > EthernetLen {
			return id, true
		}
	}
	return 0, false
}

// DestinationMAC returns the destination MAC of the frame.
func (p *Packet) DestinationMAC() MAC { return MAC(p.frame[:6]) }

// Priority returns the priority in the outermost VLAN tag (802.1p), 0 to 7; 0 for untagged frames.
func (p *Packet) Priority() uint8 {
	if p.ip == EthernetLen {
		return 0
	}
	return p.frame[EthernetLen] >> vlanPriorityShift
}

// SourceMAC returns the source MAC of the frame.
func (p *Packet) SourceMAC() MAC { return MAC(p.frame[ethSource : ethSource+6]) }

// ICRC returns the invariant CRC in the packet.
func (p *Packet) ICRC() uint32 { return binary.LittleEndian.Uint32(p.frame[len(p.frame)-ICRCLen:]) }
