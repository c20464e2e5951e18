// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
)

// The bytes of a CNP after the UDP header are opcode 0x81, BECN, PSN 0, 16 reserved bytes and the ICRC.
func TestCNP(t *testing.T) {
	for _, shape := range shapes {
		template := NewTemplate(shape.path)
		frame := bytes.Repeat([]byte{0xA5}, MaxHeaders+16+MaxTrailer)
		frame = frame[:template.SealCNP(frame, 0x000123, 0x123456, PKeyDefault, 0xBEEF)]
		want := []byte{
			0x81,       // opcode
			0x40,       // MigReq, no pad
			0xFF, 0xFF, // P_Key
			0x40,             // BECN
			0x12, 0x34, 0x56, // destination queue pair
			0, 0, 0, 0, // PSN
			0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		}
		body := frame[template.HeaderLen() : len(frame)-ICRCLen]
		if !bytes.Equal(body, want) {
			t.Errorf("%s: % x", shape.name, body)
		}
		var p Packet
		if fault := Parse(frame, &p); fault != FaultNone || !p.CheckICRC() || p.Marked() || p.BTH().Opcode() != OpcodeCNP {
			t.Errorf("%s: fault %v", shape.name, fault)
		}
		var grh [GRHLen]byte
		if p.PutGRH(&grh); GRH(grh[:]).TrafficClass() != 48<<2 {
			t.Errorf("%s: traffic class %#x", shape.name, GRH(grh[:]).TrafficClass())
		}
	}
}

// ECNCapable changes only the ECN bits. Only ECN-capable packets are marked, and their ICRC stays correct.
func TestMark(t *testing.T) {
	for _, shape := range shapes {
		for class := range 256 {
			path := shape.path
			path.TrafficClass = uint8(class)
			plain := NewTemplate(path)
			capable := plain.ECNCapable()
			if class&ecnBits == 0 {
				path.TrafficClass |= ecnECT0
			}
			d := datagram(true)
			var a, b [MaxHeaders + MaxTrailer]byte
			meant := NewTemplate(path)
			frame, want := a[:capable.Seal(a[:], &d, 0)], b[:meant.Seal(b[:], &d, 0)]
			if !bytes.Equal(frame, want) {
				t.Fatalf("%s, class %#x: % x, want % x", shape.name, class, frame, want)
			}
			var p Packet
			if !Mark(frame) || Parse(frame, &p) != FaultNone || !p.Marked() || !p.CheckICRC() {
				t.Fatalf("%s, class %#x: not marked, or wrong: % x", shape.name, class, frame)
			}
			frame = a[:plain.Seal(a[:], &d, 0)]
			if Mark(frame) != (class&ecnBits != 0) || Parse(frame, &p) != FaultNone || p.Marked() != (class&ecnBits != 0) {
				t.Fatalf("%s, class %#x: marked", shape.name, class)
			}
		}
	}
	for _, short := range [][]byte{nil, make([]byte, 14), append(make([]byte, 12), 8, 0, 0x45, 2), append(make([]byte, 12), 0x86, 0xDD, 0x60, 0x20)} {
		if Mark(short) {
			t.Errorf("% x is marked", short)
		}
	}
}
