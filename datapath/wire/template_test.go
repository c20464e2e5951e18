// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"

	"github.com/roced/roced/datapath/wire/wiretest"
)

// TestFieldsAreCut sets values wider than their fields: adjacent fields do not change.
func TestFieldsAreCut(t *testing.T) {
	path := pathIPv6
	path.VLAN, path.FlowLabel = 0x123, 0xABCDE
	d := Datagram{DestQP: 0x123456, SourceQP: 0x789ABC, PSN: 0xDEF012, PKey: PKeyDefault}
	want := build(t, path, d, nil)
	path.VLAN, path.FlowLabel = 0xF123, 0xFFFABCDE
	d.DestQP, d.SourceQP, d.PSN = 0xFF123456, 0xFF789ABC, 0xFFDEF012
	if got := build(t, path, d, nil); !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

// TestVLANPriority: the tag contains the priority before the VLAN ID.
func TestVLANPriority(t *testing.T) {
	path := pathIPv6
	path.VLAN, path.Priority = 0x123, 5
	if got := build(t, path, Datagram{}, nil)[EthernetLen:]; got[0] != 0xA1 || got[1] != 0x23 {
		t.Errorf("% x, want a1 23", got[:2])
	}
}

// TestFold compares the sum of RFC 1071 with arithmetic modulo 0xFFFF.
func TestFold(t *testing.T) {
	for _, sum := range []uint64{0, 1, 0xFFFF, 0x10000, 0x1FFFF, 0xFFFFFFFF, 0x1_0000_0000, 0x1_0000_0002, 0x1_0000_FFFF,
		0x4_FFFF_FFFB, 0x1_0000_FFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF} {
		want := uint16(sum % 0xFFFF)
		if want == 0 && sum != 0 {
			want = 0xFFFF
		}
		if got := fold(sum); got != want {
			t.Errorf("%#x: %#x, want %#x", sum, got, want)
		}
	}
}

// TestIPv4ChecksumEveryID builds with every identification: the incremental sum is correct for all of them, including
// the two zeros of one's complement.
func TestIPv4ChecksumEveryID(t *testing.T) {
	template := NewTemplate(pathIPv4)
	var frame [MaxHeaders + MaxTrailer]byte
	for id := range 1 << 16 {
		d := Datagram{ID: uint16(id)}
		got := frame[:template.Seal(frame[:], &d, 0)]
		want := bytes.Clone(got)
		wiretest.FixIPv4(want[EthernetLen:])
		if !bytes.Equal(got, want) {
			t.Fatalf("identification %#x: checksum % x, want % x", id, got[24:26], want[24:26])
		}
	}
}

// TestTemplateIsReused seals different packets with one template: no bytes of one are left in the next.
func TestTemplateIsReused(t *testing.T) {
	for _, shape := range shapes {
		template := NewTemplate(shape.path)
		frame := bytes.Repeat([]byte{0xA5}, 2048)
		for _, length := range []int{1024, 1, 0, 7, 64} {
			for _, hasImm := range []bool{true, false} {
				d := datagram(hasImm)
				copy(frame[template.PayloadOffset(hasImm):], filler(length))
				n := template.Seal(frame, &d, length)
				if want := build(t, shape.path, d, filler(length)); !bytes.Equal(frame[:n], want) {
					t.Errorf("%s, %d bytes: % x, want % x", shape.name, length, frame[:n], want)
				}
			}
		}
	}
}
