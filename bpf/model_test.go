// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// A model of the program's decision, which follows the rules in DESIGN's section on steering, one row per rule,
// independent of the program's parser.

// packet contains the fields of a frame. Fields beyond the end of the frame are zero.
type packet struct {
	readable   bool // IPv4 or IPv6 with a UDP header, possibly with wrong lengths
	fragment   bool
	options    bool
	src, dst   netip.Addr
	present    int // bytes of the IP packet in the frame
	claimed    int // length of the IP packet according to its header
	ipHeader   int
	port       uint16
	udpLength  int
	opcode     byte
	qpn        uint32
	transports int // length of the headers from BTH on and of the ICRC in bytes
}

// decide returns the verdict of a frame: that of the first matching row.
func (w world) decide(frame []byte) Verdict {
	inner, inVLAN, readable := w.untag(frame)
	mac := [6]byte(frame)
	p := dissect(inner)
	for _, rule := range []struct {
		verdict Verdict
		applies bool
	}{
		{PassNotRoCE, !readable},
		{PassVLAN, !inVLAN},
		{PassFragment, p.fragment},
		{PassNotRoCE, !p.readable || p.port != 4791},
		{PassGroup, isGroup(p.dst) && !w.groups[p.dst]},
		{PassNotOwn, !isGroup(p.dst) && !w.own[p.dst]},
		{PassOtherHost, mac[0]&1 == 0 && !slices.Contains(w.macs, mac)},
		{DropOptions, p.options},
		{DropTruncated, p.present < p.claimed},
		{DropLength, p.udpLength != p.claimed-p.ipHeader},
		{DropLength, p.udpLength < 8+p.transports},
		{DropMulticastSource, isGroup(p.src)},
		{DropMartianSource, isMartian(p.src)},
		{DropOwnSource, w.own[p.src]},
		{DropMartianSource, w.broadcasts[p.src]},
		{DropGroupQPN, isGroup(p.dst) && p.qpn != 0xFFFFFF},
		{DropUnknownQP, !isGroup(p.dst) && !w.queuePairs[p.qpn]},
		{DropNoRing, !w.ring},
	} {
		if rule.applies {
			return rule.verdict
		}
	}
	return Redirected
}

// untag returns the rest of the frame from the last EtherType.
func (w world) untag(frame []byte) (inner []byte, inVLAN, readable bool) {
	var vlans []uint16
	inner = frame[12:]
	for tags := 0; isTag(inner); tags++ {
		if len(inner) < 6 {
			return inner, false, len(vlans) > 0 // more than one VLAN
		}
		if vlan := binary.BigEndian.Uint16(inner[2:]) & 0x0FFF; vlan != 0 || tags > 0 {
			vlans = append(vlans, vlan)
		}
		inner = inner[4:]
	}
	if w.vlan == 0 {
		return inner, len(vlans) == 0, true
	}
	return inner, len(vlans) == 1 && vlans[0] == w.vlan, true
}

func isTag(b []byte) bool {
	ethertype := binary.BigEndian.Uint16(b)
	return ethertype == 0x8100 || ethertype == 0x88a8
}

// isGroup differs from IsMulticast for IPv4 groups in IPv6 headers, which are not groups here.
func isGroup(addr netip.Addr) bool { return addr.IsMulticast() && !addr.Is4In6() }

// isMartian reports whether a source address is invalid. It is implemented independently of the program.
func isMartian(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsUnspecified() || addr.Is4In6() || addr == netip.MustParseAddr("255.255.255.255")
}

func dissect(b []byte) packet {
	switch ethertype, b := binary.BigEndian.Uint16(b), b[2:]; {
	case ethertype == 0x0800 && len(b) >= 20 && b[0]>>4 == 4:
		return dissectIPv4(b)
	case ethertype == 0x86DD && len(b) >= 40 && b[0]>>4 == 6:
		return dissectIPv6(b)
	}
	return packet{}
}

func dissectIPv4(b []byte) packet {
	flags := binary.BigEndian.Uint16(b[6:])
	p := packet{
		ipHeader: int(b[0]&15) * 4,
		claimed:  int(binary.BigEndian.Uint16(b[2:])),
		present:  len(b),
		src:      netip.AddrFrom4([4]byte(b[12:])),
		dst:      netip.AddrFrom4([4]byte(b[16:])),
	}
	if p.ipHeader < 20 || b[9] != 17 {
		return packet{}
	}
	p.options = p.ipHeader > 20
	p.fragment = flags&0x2000 != 0 || flags&0x1FFF != 0
	p.dissectUDP(b)
	return p
}

func dissectIPv6(b []byte) packet {
	p := packet{
		ipHeader: 40,
		claimed:  40 + int(binary.BigEndian.Uint16(b[4:])),
		present:  len(b),
		src:      netip.AddrFrom16([16]byte(b[8:])),
		dst:      netip.AddrFrom16([16]byte(b[24:])),
	}
	switch b[6] {
	case 44:
		p.fragment = true
	case 17:
		p.dissectUDP(b)
	}
	return p
}

func (p *packet) dissectUDP(ip []byte) {
	if len(ip) < p.ipHeader+8 {
		return
	}
	udp := ip[p.ipHeader:]
	p.readable = true
	p.port = binary.BigEndian.Uint16(udp[2:])
	p.udpLength = int(binary.BigEndian.Uint16(udp[4:]))
	p.transports = 12 + 4
	if len(udp) < 8+12 {
		return
	}
	p.opcode = udp[8]
	p.qpn = binary.BigEndian.Uint32(udp[8+4:]) & 0xFFFFFF
	if p.opcode&0xE0 == 0x60 {
		p.transports += 8
	}
}
