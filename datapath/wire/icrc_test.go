// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/roced/roced/datapath/wire/wiretest"
)

// variant reports whether the ICRC does not cover a bit of a frame, according to WIRE.md: a bit that routers may
// change, or a bit before the IP header.
func variant(p *Packet, offset int, bit uint) bool {
	ip, bth := p.ip, p.bth
	switch {
	case offset < ip: // Ethernet, VLAN tags
		return true
	case offset >= bth-2 && offset < bth: // UDP checksum
		return true
	case offset == bth+4: // FECN, BECN, reserved
		return true
	case p.v6:
		return offset == ip && bit < 4 || // version stays, traffic class begins
			offset > ip && offset < ip+4 || // traffic class, flow label
			offset == ip+7 // hop limit
	}
	return offset == ip+1 || // TOS
		offset == ip+8 || // TTL
		offset == ip+10 || offset == ip+11 // header checksum
}

// TestICRCCoverage flips every bit of every frame, of the peer and of this package. The ICRC is wrong if and only if it
// covers the bit.
func TestICRCCoverage(t *testing.T) {
	frames := peerPackets(t)
	for _, shape := range shapes {
		frames = append(frames, build(t, shape.path, datagram(true), filler(5)))
	}
	for _, frame := range frames {
		p := mustParse(t, frame)
		before := bytes.Clone(frame)
		for offset := range frame {
			for bit := range uint(8) {
				frame[offset] ^= 1 << bit
				if right := p.CheckICRC(); right != variant(p, offset, bit) {
					t.Fatalf("byte %d bit %d flipped: ICRC right %v in % x", offset, bit, right, frame)
				}
				frame[offset] ^= 1 << bit
			}
		}
		if !bytes.Equal(frame, before) {
			t.Fatal("CheckICRC changed the frame")
		}
	}
}

// TestFlippedBitIsNotDelivered parses each frame after a flip: a frame that Parse accepts is unchanged in its covered
// bits, or has a wrong ICRC.
func TestFlippedBitIsNotDelivered(t *testing.T) {
	for _, shape := range shapes {
		frame := build(t, shape.path, datagram(false), filler(6))
		p := *mustParse(t, frame)
		for offset := p.ip; offset < len(frame); offset++ {
			for bit := range uint(8) {
				frame[offset] ^= 1 << bit
				var flipped Packet
				fault := Parse(frame, &flipped)
				if harmless := variant(&p, offset, bit); fault == FaultNone && flipped.CheckICRC() != harmless {
					t.Errorf("%s: byte %d bit %d: parsed, harmless %v", shape.name, offset, bit, harmless)
				} else if fault != FaultNone && harmless && fault != FaultIPChecksum {
					t.Errorf("%s: byte %d bit %d: harmless, but fault %v", shape.name, offset, bit, fault)
				}
				frame[offset] ^= 1 << bit
			}
		}
	}
}

// TestRoutersMayChange changes a packet as routers and switches do.
func TestRoutersMayChange(t *testing.T) {
	for _, shape := range shapes {
		frame := build(t, shape.path, datagram(true), filler(64))
		p := mustParse(t, frame)
		if p.v6 {
			frame[p.ip] |= 0x0F
			frame[p.ip+1], frame[p.ip+2], frame[p.ip+3], frame[p.ip+7] = 0x12, 0x34, 0x56, 1
		} else {
			frame[p.ip+1], frame[p.ip+8] = 3, 1
			wiretest.FixIPv4(frame[p.ip:])
		}
		frame[p.bth-2], frame[p.bth-1] = 0xAB, 0xCD // UDP checksum
		frame[p.bth+4] = 0xC0                       // FECN, BECN
		if after := mustParse(t, frame); !after.CheckICRC() {
			t.Errorf("%s: wrong ICRC after permitted changes", shape.name)
		}
	}
}

// TestICRCOfAnyLength compares the ICRC with package crc32, for all lengths of the bytes after the last whole block.
func TestICRCOfAnyLength(t *testing.T) {
	all := make([]byte, 300)
	for i := range all {
		all[i] = byte(i * i)
	}
	for length := range all {
		if got, want := icrc(all[:length]), crc32.Update(icrcSeed, crc32.IEEETable, all[:length]); got != want {
			t.Errorf("%d bytes: %#x, want %#x", length, got, want)
		}
	}
}
