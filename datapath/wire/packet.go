package wire

import (
	"encoding/binary"
	"fmt"
)

// Fault says why a frame is not a packet that can be taken.
type Fault uint8

// The faults, in the order in which Parse looks for them.
const (
	FaultNone       Fault = iota
	FaultNotRoCE          // not IP, not UDP, or another port
	FaultOptions          // IPv4 options: RoCEv2 has none
	FaultFragment         // a part of a datagram; RoCEv2 is sent unfragmented
	FaultTruncated        // the frame ends before the packet does
	FaultLength           // IP and UDP lengths disagree, or do not hold the headers
	FaultIPChecksum       // IPv4 header checksum wrong
	FaultVersion          // transport header version other than 0
	FaultOpcode           // no such opcode
	FaultPad              // pad count does not fit the length
)

var faultNames = [...]string{"none", "not_roce", "ip_options", "fragment", "truncated", "length",
	"ip_checksum", "transport_version", "unknown_opcode", "pad"}

// String names the fault as its drop counter is named.
func (f Fault) String() string {
	if int(f) < len(faultNames) {
		return faultNames[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// Packet is a parsed view of a frame. It borrows the frame; no accessor fails
// after a Parse that gave FaultNone. Before that its accessors may panic.
type Packet struct {
	frame   []byte // cut behind the ICRC
	ip      int    // offset of the IP header, which is the GRH
	bth     int
	payload int
	end     int // where the payload ends: pad and ICRC follow
	headers HeaderMask
	v6      bool
}

// Parse looks at a frame once and fills p. Whatever it accepts has an IP and a
// UDP header that agree, a known opcode, all headers of that opcode, and a pad
// count that fits. The ICRC is not looked at.
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

// etherType finds the network header behind at most two VLAN tags; 0 if there is none.
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

// parseUDP goes on at the UDP header, with p.frame cut by the IP length.
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

// BTH is the base transport header.
func (p *Packet) BTH() BTH { return BTH(p.frame[p.bth : p.bth+BTHLen : p.bth+BTHLen]) }

// Has reports whether the packet carries all headers of the set.
func (p *Packet) Has(headers HeaderMask) bool { return p.headers&headers == headers }

// DETH is the datagram header; only for packets that have HeaderDETH and no HeaderRDETH.
func (p *Packet) DETH() DETH { return DETH(p.frame[p.bth+BTHLen : p.bth+BTHLen+DETHLen]) }

// Imm is the immediate data, which ends where the payload starts; only for
// packets that have HeaderImm.
func (p *Packet) Imm() uint32 { return binary.BigEndian.Uint32(p.frame[p.payload-ImmLen:]) }

// Payload is what the sender's program sent, without pad.
func (p *Packet) Payload() []byte { return p.frame[p.payload:p.end:p.end] }

// IsIPv6 says which of the two IP headers the packet has.
func (p *Packet) IsIPv6() bool { return p.v6 }

// Addresses are source and destination as they stand in the IP header, one
// behind the other: a quick way to see that a packet is of the same two hosts as another.
func (p *Packet) Addresses() []byte {
	if p.v6 {
		return p.frame[p.ip+ipv6Source : p.ip+IPv6Len]
	}
	return p.frame[p.ip+ipv4Source : p.ip+IPv4Len]
}

// Source is the sender's GID: the source address of the IP header.
func (p *Packet) Source() GID {
	if p.v6 {
		return IPv6(p.frame[p.ip:]).source()
	}
	return IPv4(p.frame[p.ip:]).source()
}

// Destination is the GID that the packet was sent to.
func (p *Packet) Destination() GID {
	if p.v6 {
		return IPv6(p.frame[p.ip:]).destination()
	}
	return IPv4(p.frame[p.ip:]).destination()
}

// VLAN gives the identifier in the outermost VLAN tag; ok is false on untagged frames. A
// first tag of VLAN 0 is a priority and no VLAN, as Linux has it.
func (p *Packet) VLAN() (id uint16, ok bool) {
	for at := EthernetLen; at < p.ip; at += VLANLen {
		if id = binary.BigEndian.Uint16(p.frame[at:]) & vlanIDMask; id != 0 || at > EthernetLen {
			return id, true
		}
	}
	return 0, false
}

// DestinationMAC is the Ethernet address that the frame was sent to.
func (p *Packet) DestinationMAC() MAC { return MAC(p.frame[:6]) }

// Priority is the class of service in the outermost VLAN tag (802.1p); 0 on untagged frames.
func (p *Packet) Priority() uint8 {
	if p.ip == EthernetLen {
		return 0
	}
	return p.frame[EthernetLen] >> vlanPriorityShift
}

// SourceMAC is the Ethernet address that the frame came from.
func (p *Packet) SourceMAC() MAC { return MAC(p.frame[ethSource : ethSource+6]) }

// ICRC is the invariant CRC as the packet carries it.
func (p *Packet) ICRC() uint32 { return binary.LittleEndian.Uint32(p.frame[len(p.frame)-ICRCLen:]) }
