// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// An ICRC corrected for another identification equals that of a packet sealed with it.
func TestEffect(t *testing.T) {
	var n Numbering
	for _, length := range []int{0, 1, 4, 63, 1024, 4096} {
		for _, id := range []uint16{1, 2, 3, 59, 0x8000, 0xBEEF, 0xFFFF} {
			d := datagram(false)
			d.ID = 0
			p := mustParse(t, build(t, pathIPv4, d, filler(length)))
			d.ID = id
			want := mustParse(t, build(t, pathIPv4, d, filler(length)))
			if got := p.ICRC() ^ n.Effect(len(p.frame)-p.bth, id); got != want.ICRC() {
				t.Errorf("%d bytes, identification %#x: %08x, want %08x", length, id, got, want.ICRC())
			}
		}
	}
	for _, length := range []int{-4, 0, 3, 1 << 20} { // no packet has such a length; with 0 it has no ICRC
		_ = n.Effect(length, 0xFFFF)
	}
}

// Solve finds any identification and Don't Fragment flag of a sealed packet.
func TestSolve(t *testing.T) {
	var n Numbering
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		d := datagram(true)
		d.ID = uint16(random.Uint32())
		frame := build(t, pathIPv4, d, filler(random.IntN(4096)))
		if random.IntN(2) == 0 {
			p := mustParse(t, frame)
			p.changeID(0, true)
			binary.LittleEndian.PutUint32(frame[len(frame)-ICRCLen:], p.computeICRC())
		}
		want := bytes.Clone(frame)
		p := mustParse(t, frame)
		p.changeID(uint16(random.Uint32()), random.IntN(2) == 0) // the receiver's guess
		if !p.CheckICRC() && !n.Solve(p) {
			t.Fatalf("%d bytes, identification %#x was not found", len(p.Payload()), d.ID)
		}
		if !bytes.Equal(frame, want) || !p.CheckICRC() {
			t.Fatalf("%d bytes, identification %#x: another was found:\n% x\n% x", len(p.Payload()), d.ID, want[:40], frame[:40])
		}
	}
}

// Solve takes a damaged packet for one with another identification once in 2^15 packets. It then changes no other
// field.
func TestSolveDamaged(t *testing.T) {
	var n Numbering
	random := rand.New(rand.NewPCG(3, 4))
	const tries = 1 << 17
	taken, d := 0, datagram(false)
	whole := build(t, pathIPv4, d, filler(60))
	frame := make([]byte, len(whole))
	for range tries {
		copy(frame, whole)
		for range 1 + random.IntN(3) {
			frame[EthernetLen+IPv4Len+UDPLen+BTHLen+random.IntN(60)] ^= byte(1 + random.IntN(255))
		}
		p := mustParse(t, frame)
		payload := bytes.Clone(p.Payload())
		if !p.CheckICRC() && n.Solve(p) {
			taken++
			if p.computeICRC() != p.ICRC() || !bytes.Equal(payload, p.Payload()) {
				t.Fatal("an accepted packet has a wrong ICRC, or was changed")
			}
		}
	}
	if taken > 16 { // 4 are expected
		t.Errorf("%d of %d damaged packets were accepted", taken, tries)
	}
}

// IPv6 has no identification, so Solve never accepts a packet.
func TestSolveIPv6(t *testing.T) {
	var n Numbering
	for bit := range 60 * 8 {
		frame := build(t, pathIPv6, datagram(false), filler(60))
		at := EthernetLen + IPv6Len + UDPLen + BTHLen + DETHLen
		frame[at+bit/8] ^= 1 << (bit % 8)
		if p := mustParse(t, frame); p.CheckICRC() || n.Solve(p) {
			t.Fatalf("a changed bit %d was accepted", bit)
		}
	}
}

// FuzzSolve: after Solve, a packet that Parse accepts has a correct ICRC, or is unchanged.
func FuzzSolve(f *testing.F) {
	for _, frame := range peerPackets(f) {
		f.Add(frame)
	}
	f.Add(build(f, pathIPv4, datagram(true), filler(5)))
	var n Numbering
	f.Fuzz(func(t *testing.T, frame []byte) {
		frame = bytes.Clone(frame)
		var p Packet
		if Parse(frame, &p) != FaultNone {
			return
		}
		before := bytes.Clone(frame)
		if p.CheckICRC() {
			return
		}
		if solved := n.Solve(&p); solved != !bytes.Equal(before, frame) || solved && (!p.CheckICRC() || Parse(frame, &p) != FaultNone) {
			t.Errorf("solved %v:\n% x\n% x", solved, before, frame)
		}
	})
}

// The headers that PutHeaders writes before a UDP payload equal those with which the packet was sealed.
func TestPutHeaders(t *testing.T) {
	for _, path := range []Path{pathIPv4, pathIPv6} {
		d := datagram(false)
		frame := build(t, path, d, filler(33))
		want := bytes.Clone(frame)
		template := NewTemplate(path)
		clear(frame[:template.HeaderLen()])
		template.PutHeaders(frame, d.ID, template.sourcePort(d.SourceQP, d.DestQP))
		if !bytes.Equal(frame, want) {
			t.Errorf("\n% x\n% x", frame, want)
		}
	}
}

// If a path has source ports, a packet has one of them, which depends on the queue pairs.
func TestSourcePorts(t *testing.T) {
	path := pathIPv4
	path.SourcePorts = SourcePorts{0xC001, 0xC002, 0xC003, 0xC004}
	template := NewTemplate(path)
	seen := map[uint16]bool{}
	for qpn := range QPN(64) {
		seen[template.sourcePort(qpn, 77)] = true
	}
	if len(seen) != 4 || seen[0] {
		t.Errorf("%v", seen)
	}
}
