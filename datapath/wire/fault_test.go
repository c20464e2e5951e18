// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/roced/roced/datapath/wire/wiretest"
)

// Offsets in the frames below, from the start of an untagged frame.
const (
	atType   = 12
	atIP     = 14
	atUDP4   = atIP + 20
	atUDP6   = atIP + 40
	atBTH4   = atUDP4 + 8
	atBTH6   = atUDP6 + 8
	sentLong = 8 // bytes of payload in the frames that rows change
)

// put16 returns a change that writes two bytes.
func put16(offset int, value uint16) func([]byte) []byte {
	return func(frame []byte) []byte {
		binary.BigEndian.PutUint16(frame[offset:], value)
		return frame
	}
}

// put returns a change that writes bytes.
func put(offset int, value ...byte) func([]byte) []byte {
	return func(frame []byte) []byte {
		copy(frame[offset:], value)
		return frame
	}
}

// cut returns a change that truncates the frame, so that no bytes after its end can be read.
func cut(length int) func([]byte) []byte {
	return func(frame []byte) []byte { return bytes.Clone(frame[:length]) }
}

// lengths returns a change that sets the IPv4 and UDP lengths.
func lengths(ip, udp uint16) func([]byte) []byte {
	return func(frame []byte) []byte {
		binary.BigEndian.PutUint16(frame[atIP+2:], ip)
		binary.BigEndian.PutUint16(frame[atUDP4+4:], udp)
		return frame
	}
}

// tags returns a change that inserts VLAN tags of some kinds.
func tags(kinds ...uint16) func([]byte) []byte {
	return func(frame []byte) []byte {
		var tags []byte
		for i, kind := range kinds {
			tags = binary.BigEndian.AppendUint16(tags, kind)
			tags = binary.BigEndian.AppendUint16(tags, uint16(0xE001+i))
		}
		return bytes.Join([][]byte{frame[:atType], tags, frame[atType:]}, nil)
	}
}

// faults are changes to a valid frame with 8 bytes of payload, and the result of Parse. The IPv4 checksum is corrected
// after the change, except where it is the fault.
var faults = []struct {
	name   string
	path   Path
	change func([]byte) []byte
	want   Fault
}{
	{"nothing changed", pathIPv4, put(0), FaultNone},
	{"IPv6, nothing changed", pathIPv6, put(0), FaultNone},

	{"no bytes", pathIPv4, cut(0), FaultNotRoCE},
	{"no Ethernet header", pathIPv4, cut(13), FaultNotRoCE},
	{"Ethernet header alone", pathIPv4, cut(14), FaultNotRoCE},
	{"ends in the IPv4 header", pathIPv4, cut(atUDP4 - 1), FaultNotRoCE},
	{"ends in the UDP header", pathIPv4, cut(atBTH4 - 1), FaultNotRoCE},
	{"IPv6, ends in the UDP header", pathIPv6, cut(atBTH6 - 1), FaultNotRoCE},
	{"ARP", pathIPv4, put16(atType, 0x0806), FaultNotRoCE},
	{"RoCE version 1", pathIPv4, put16(atType, 0x8915), FaultNotRoCE},
	{"type IPv4, version 6", pathIPv4, put(atIP, 0x65), FaultNotRoCE},
	{"type IPv6, version 4", pathIPv6, put(atIP, 0x45), FaultNotRoCE},
	{"type IPv6 on an IPv4 packet", pathIPv4, put16(atType, 0x86DD), FaultNotRoCE},
	{"type IPv4 on an IPv6 packet", pathIPv6, put16(atType, 0x0800), FaultNotRoCE},
	{"TCP", pathIPv4, put(atIP+9, 6), FaultNotRoCE},
	{"IPv6, TCP", pathIPv6, put(atIP+6, 6), FaultNotRoCE},
	{"IPv6, hop-by-hop options", pathIPv6, put(atIP+6, 0), FaultNotRoCE},
	{"another UDP port", pathIPv4, put16(atUDP4+2, 4790), FaultNotRoCE},
	{"IPv6, another UDP port", pathIPv6, put16(atUDP6+2, 53), FaultNotRoCE},
	{"RoCE's port as the source", pathIPv4, put(atUDP4, 0x12, 0xB7, 0xC0, 0x00), FaultNotRoCE},

	{"two tags", pathIPv4, tags(0x88A8, 0x8100), FaultNone},
	{"two tags of one kind", pathIPv6, tags(0x8100, 0x8100), FaultNone},
	{"three tags", pathIPv4, tags(0x8100, 0x8100, 0x8100), FaultNotRoCE},
	{"ends in a tag", pathIPv4, func(f []byte) []byte { return cut(17)(tags(0x8100)(f)) }, FaultNotRoCE},
	{"ends in the second tag", pathIPv4, func(f []byte) []byte { return cut(21)(tags(0x8100, 0x8100)(f)) }, FaultNotRoCE},

	{"IPv4 options", pathIPv4, put(atIP, 0x46), FaultOptions},
	{"IPv4 header of 4 words", pathIPv4, put(atIP, 0x44), FaultOptions},

	{"first fragment", pathIPv4, put16(atIP+6, 0x2000), FaultFragment},
	{"last fragment", pathIPv4, put16(atIP+6, 0x0001), FaultFragment},
	{"fragment at the highest offset", pathIPv4, put16(atIP+6, 0x1000), FaultFragment},
	{"may be fragmented, is not", pathIPv4, put16(atIP+6, 0), FaultNone},
	{"IPv6 fragment header", pathIPv6, put(atIP+6, 44), FaultFragment},

	{"ends one byte early", pathIPv4, cut(atBTH4 + 20 + sentLong + 3), FaultTruncated},
	{"IPv6, ends one byte early", pathIPv6, cut(atBTH6 + 20 + sentLong + 3), FaultTruncated},
	{"IPv4 length beyond the frame", pathIPv4, put16(atIP+2, 61), FaultTruncated},
	{"IPv4 length at its most", pathIPv4, put16(atIP+2, 0xFFFF), FaultTruncated},
	{"IPv6 length beyond the frame", pathIPv6, put16(atIP+4, 41), FaultTruncated},
	{"IPv6 length at its most", pathIPv6, put16(atIP+4, 0xFFFF), FaultTruncated},

	{"IPv4 length 0", pathIPv4, put16(atIP+2, 0), FaultLength},
	{"IPv4 length without UDP", pathIPv4, put16(atIP+2, 27), FaultLength},
	{"IPv4 length below UDP's", pathIPv4, lengths(56, 40), FaultLength},
	{"UDP length below IPv4's", pathIPv4, lengths(60, 36), FaultLength},
	{"UDP length above IPv4's", pathIPv4, lengths(60, 41), FaultLength},
	{"UDP length 0", pathIPv4, lengths(60, 0), FaultLength},
	{"IPv6 length 0 (a jumbogram)", pathIPv6, put16(atIP+4, 0), FaultLength},
	{"IPv6 length without UDP", pathIPv6, put16(atIP+4, 7), FaultLength},
	{"IPv6 length below UDP's", pathIPv6, put16(atIP+4, 36), FaultLength},
	{"IPv6, UDP length below IPv6's", pathIPv6, put16(atUDP6+4, 36), FaultLength},
	{"UDP header alone", pathIPv4, lengths(28, 8), FaultLength},
	{"no room for the BTH", pathIPv4, lengths(20+8+11, 8+11), FaultLength},
	{"no room for the ICRC", pathIPv4, lengths(20+8+12+3, 8+12+3), FaultLength},
	{"no room for the DETH", pathIPv4, lengths(20+8+12+7+4, 8+12+7+4), FaultLength},
	{"no room for the immediate data", pathIPv4, func(f []byte) []byte {
		return lengths(20+8+12+8+3+4, 8+12+8+3+4)(put(atBTH4, 0x65)(f))
	}, FaultLength},
	{"no room for an AtomicETH", pathIPv4, put(atBTH4, 0x13), FaultLength},
	{"read request with payload", pathIPv4, func(f []byte) []byte {
		return append(lengths(64, 44)(put(atBTH4, 0x0C)(f)), 0, 0, 0, 0)
	}, FaultLength},
	{"acknowledge with payload", pathIPv4, put(atBTH4, 0x11), FaultLength},
	{"congestion notice without payload", pathIPv4, put(atBTH4, 0x81), FaultNone},
	{"congestion notice with payload", pathIPv4, func(f []byte) []byte {
		return append(lengths(64, 44)(put(atBTH4, 0x81)(f)), 0, 0, 0, 0)
	}, FaultLength},

	{"transport version 1", pathIPv4, put(atBTH4+1, 0x41), FaultVersion},
	{"transport version 15", pathIPv6, put(atBTH6+1, 0x4F), FaultVersion},
	{"opcode of no service", pathIPv4, put(atBTH4, 0xFF), FaultOpcode},
	{"opcode not of its service", pathIPv4, put(atBTH4, 0x60), FaultOpcode},
	{"opcode of the manufacturers", pathIPv6, put(atBTH6, 0xC0), FaultOpcode},

	{"pad within the payload", pathIPv4, put(atBTH4+1, 0x70), FaultNone},
	{"pad without payload", pathIPv4, func(f []byte) []byte {
		return lengths(52, 32)(put(atBTH4+1, 0x50)(f))
	}, FaultPad},
	{"length is not of whole words", pathIPv4, lengths(59, 39), FaultPad},
	{"pad for a length without", pathIPv6, func(f []byte) []byte {
		return put16(atIP+4, 38)(put16(atUDP6+4, 38)(put(atBTH6+1, 0x60)(f)))
	}, FaultPad},
	{"acknowledge with pad", pathIPv4, func(f []byte) []byte {
		return lengths(20+8+12+4+4, 8+12+4+4)(put(atBTH4, 0x11, 0x50)(f))
	}, FaultPad},
}

func TestFaults(t *testing.T) {
	seen := map[Fault]bool{FaultIPChecksum: true} // has a separate test
	for _, row := range faults {
		frame := row.change(build(t, row.path, datagram(false), filler(sentLong)))
		if at := bytes.Index(frame, []byte{0x08, 0x00}); at >= 0 && row.path.Dest.IsIPv4() && len(frame) >= at+2+IPv4Len {
			wiretest.FixIPv4(frame[at+2:])
		}
		var p Packet
		if fault := Parse(frame[:len(frame):len(frame)], &p); fault != row.want {
			t.Errorf("%s: %v, want %v", row.name, fault, row.want)
		}
		seen[row.want] = true
	}
	for fault := range Fault(len(faultNames)) {
		if !seen[fault] {
			t.Errorf("no row for %v", fault)
		}
	}
}

func TestIPv4ChecksumFault(t *testing.T) {
	frame := build(t, pathIPv4, datagram(false), filler(sentLong))
	var p Packet
	for bit := range 16 {
		wrong := bytes.Clone(frame)
		wrong[atIP+10+bit/8] ^= 1 << (bit % 8)
		if fault := Parse(wrong, &p); fault != FaultIPChecksum {
			t.Errorf("bit %d: %v", bit, fault)
		}
	}
}

func TestFaultNames(t *testing.T) {
	seen := map[string]bool{}
	for fault := FaultNone; fault <= FaultPad; fault++ {
		if name := fault.String(); name == "" || seen[name] {
			t.Errorf("fault %d has the name %q", fault, name)
		} else {
			seen[name] = true
		}
	}
	if name := (FaultPad + 1).String(); name != "fault(10)" {
		t.Errorf("an invalid fault has the name %q", name)
	}
}

// TestTruncated truncates frames of every shape to every length: none is accepted, and no byte beyond the end is read.
func TestTruncated(t *testing.T) {
	var frames [][]byte
	for _, shape := range shapes {
		frames = append(frames, build(t, shape.path, datagram(true), filler(5)))
	}
	frames = append(frames, peerPackets(t)...)
	var p Packet
	for _, frame := range frames {
		for length := range frame {
			if Parse(frame[:length:length], &p) == FaultNone {
				t.Fatalf("%d of %d bytes parse: % x", length, len(frame), frame[:length])
			}
		}
	}
}

// TestEthernetPaddingIsCut pads short frames, as Ethernet does.
func TestEthernetPaddingIsCut(t *testing.T) {
	for _, shape := range shapes {
		frame := build(t, shape.path, datagram(false), filler(3))
		for padding := range 60 {
			p := mustParse(t, append(bytes.Clone(frame), bytes.Repeat([]byte{0xEE}, padding)...))
			if !p.CheckICRC() {
				t.Errorf("%s, padded by %d: ICRC wrong", shape.name, padding)
			}
			checkParsed(t, p, shape.path, datagram(false), filler(3))
		}
	}
}

// TestVLANIsTheOutermost parses frames with two tags, and one with priority only.
func TestVLANIsTheOutermost(t *testing.T) {
	frame := build(t, pathIPv4, datagram(false), nil)
	p := mustParse(t, tags(0x88A8, 0x8100)(bytes.Clone(frame)))
	if id, tagged := p.VLAN(); id != 1 || !tagged || !p.CheckICRC() {
		t.Errorf("VLAN %d, tagged %v", id, tagged)
	}
	if priority := mustParse(t, bytes.Clone(frame)).Priority(); priority != 0 {
		t.Errorf("priority %d without a tag", priority)
	}
	priority := tags(0x8100)(bytes.Clone(frame))
	put16(atType+2, 0xE000)(priority)
	p = mustParse(t, priority)
	if id, tagged := p.VLAN(); id != 0 || tagged || p.Priority() != 7 {
		t.Errorf("priority tag: VLAN %d, tagged %v, priority %d", id, tagged, p.Priority())
	}
	both := tags(0x8100, 0x8100)(bytes.Clone(frame))
	put16(atType+2, 0xE000)(both)
	inner := binary.BigEndian.Uint16(both[atType+6:]) & 0xFFF
	if id, tagged := mustParse(t, both).VLAN(); id != inner || !tagged || inner == 0 {
		t.Errorf("priority tag before VLAN %d: VLAN %d, tagged %v", inner, id, tagged)
	}
}
