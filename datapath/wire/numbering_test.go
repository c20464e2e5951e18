package wire

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// Correcting an ICRC for another identification gives what sealing with that identification gives.
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
	for _, length := range []int{-4, 0, 3, 1 << 20} { // no packet has such a length; 0 has no ICRC
		_ = n.Effect(length, 0xFFFF)
	}
}

// Whatever identification a packet was sealed with, and with or without Don't Fragment, it is found.
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
		p.changeID(uint16(random.Uint32()), random.IntN(2) == 0) // what a receiver guesses
		if !p.CheckICRC() && !n.Solve(p) {
			t.Fatalf("%d bytes, identification %#x is not found", len(p.Payload()), d.ID)
		}
		if !bytes.Equal(frame, want) || !p.CheckICRC() {
			t.Fatalf("%d bytes, identification %#x: another was found:\n% x\n% x", len(p.Payload()), d.ID, want[:40], frame[:40])
		}
	}
}

// Damage is taken for another identification once in 2^15 packets, and then changes nothing else.
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
				t.Fatal("what was taken is not right, or was changed")
			}
		}
	}
	if taken > 16 { // 4 are expected
		t.Errorf("%d of %d damaged packets were taken", taken, tries)
	}
}

// IPv6 has no identification: nothing is weaker there.
func TestSolveIPv6(t *testing.T) {
	var n Numbering
	for bit := range 60 * 8 {
		frame := build(t, pathIPv6, datagram(false), filler(60))
		at := EthernetLen + IPv6Len + UDPLen + BTHLen + DETHLen
		frame[at+bit/8] ^= 1 << (bit % 8)
		if p := mustParse(t, frame); p.CheckICRC() || n.Solve(p) {
			t.Fatalf("bit %d may be another", bit)
		}
	}
}

// FuzzSolve: whatever Parse accepts, Solve leaves it a packet with a right ICRC, or as it was.
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

// Headers that are written in front of what UDP carried are those that the packet was sealed with.
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

// Where there are source ports, a packet's is one of them, and the queue pairs decide which.
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
