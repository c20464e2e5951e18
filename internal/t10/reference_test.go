// SPDX-License-Identifier: Apache-2.0

package t10

import "encoding/binary"

// The reference implementation: whole messages, block by block and bit by bit. It shares only types with the
// tested code.

// refCRC divides by a polynomial, the highest bit first.
func refCRC(seed, poly uint32, width int, p []byte) uint32 {
	top := uint32(1) << (width - 1)
	mask := top | (top - 1)
	crc := seed
	for _, c := range p {
		for i := 7; i >= 0; i-- {
			out := crc&top != 0
			crc = crc << 1 & mask
			if out != (c>>i&1 != 0) {
				crc ^= poly
			}
		}
	}
	return crc
}

func reversed(v uint32) (r uint32) {
	for i := range 32 {
		r |= v >> i & 1 << (31 - i)
	}
	return r
}

// refCRC32 computes a CRC with the lowest bit first.
func refCRC32(seed, poly uint32, p []byte) uint32 {
	flipped := make([]byte, len(p))
	for i, c := range p {
		flipped[i] = byte(reversed(uint32(c)) >> 24)
	}
	return ^reversed(refCRC(reversed(^seed), poly, 32, flipped))
}

func refGuard(d *Domain, p []byte) uint32 {
	switch {
	case d.Type == SigCRC32:
		return refCRC32(d.Seed, 0x04c11db7, p)
	case d.Type == SigCRC32C:
		return refCRC32(d.Seed, 0x1edc6f41, p)
	case d.Type == SigXOR:
		sum := d.Seed
		for i, c := range p {
			sum ^= uint32(c) << (8 * (3 - i%4))
		}
		return sum
	case d.T10DIF.Guard == GuardCSUM:
		sum := uint64(d.T10DIF.Seed)
		for i, c := range p {
			sum += uint64(c) << (8 * (1 - i%2))
		}
		for sum > 0xffff {
			sum = sum%0x10000 + sum/0x10000
		}
		return uint32(sum ^ 0xffff)
	}
	return refCRC(uint32(d.T10DIF.Seed), 0x8bb7, 16, p)
}

// refField returns the field after a block of a domain.
func refField(d *Domain, block int, p []byte) []byte {
	guard := refGuard(d, p)
	if d.Type != SigT10DIF {
		return binary.BigEndian.AppendUint32(nil, guard)
	}
	ref := d.T10DIF.RefTag
	if d.T10DIF.RefRemap {
		ref += uint32(block)
	}
	f := binary.BigEndian.AppendUint16(nil, uint16(guard))
	f = binary.BigEndian.AppendUint16(f, d.T10DIF.AppTag)
	return binary.BigEndian.AppendUint32(f, ref)
}

// refCheck compares a field with its expected value, byte by byte under the mask.
func refCheck(mask uint8, d *Domain, offset int, have, want []byte) *Err {
	type part struct {
		t        ErrType
		from, to int
	}
	parts := []part{{BadGuard, 0, 4}}
	if d.Type == SigT10DIF {
		parts = []part{{BadGuard, 0, 2}, {BadAppTag, 2, 4}, {BadRefTag, 4, 8}}
		ones := func(p []byte) bool {
			for _, c := range p {
				if c != 0xff {
					return false
				}
			}
			return true
		}
		app, ref := ones(have[2:4]), ones(have[4:])
		e := d.T10DIF
		if e.AppEscape && e.RefEscape && app && ref || e.AppEscape && !e.RefEscape && app ||
			!e.AppEscape && e.RefEscape && ref {
			return nil
		}
	}
	number := func(p []byte) (v uint32) {
		for _, c := range p {
			v = v<<8 | uint32(c)
		}
		return v
	}
	for _, p := range parts {
		for i := p.from; i < p.to; i++ {
			differ := have[i] ^ want[i]
			if p.t == BadAppTag {
				differ &= byte(d.T10DIF.AppTagCheckMask >> (8 * (3 - i)))
			}
			if mask>>(7-i)&1 != 0 && differ != 0 {
				return &Err{p.t, number(want[p.from:p.to]), number(have[p.from:p.to]), uint64(offset + p.from), 0}
			}
		}
	}
	return nil
}

// refMove moves a whole message.
func refMove(mask uint8, from, to *Domain, src []byte) (dst []byte, failed *Err) {
	var data []byte
	var fields [][]byte
	if from.Type == SigNone {
		data = src
	}
	for block, at := 0, 0; from.Type != SigNone && at < len(src); block++ {
		end := at + int(from.Interval)
		next := end + from.FieldLen()
		want := refField(from, block, src[at:end])
		if failed == nil {
			failed = refCheck(mask, from, end, src[end:next], want)
		}
		data, fields = append(data, src[at:end]...), append(fields, src[end:next])
		at = next
	}
	if to.Type == SigNone {
		return data, failed
	}
	for block := 0; block*int(to.Interval) < len(data); block++ {
		p := data[block*int(to.Interval):][:to.Interval]
		field := refField(to, block, p)
		if from.Type == to.Type && from.Interval == to.Interval {
			refPass(field, fields[block], from, to)
		}
		dst = append(append(dst, p...), field...)
	}
	return dst, failed
}

// refPass copies the parts of a field that both domains define alike.
func refPass(field, came []byte, from, to *Domain) {
	a, b := from.T10DIF, to.T10DIF
	if from.Type != SigT10DIF {
		if from.Seed == to.Seed {
			copy(field, came)
		}
		return
	}
	if a.Guard == b.Guard && a.Seed == b.Seed {
		copy(field[:2], came)
	}
	if a.AppTag == b.AppTag {
		copy(field[2:4], came[2:])
	}
	if a.RefTag == b.RefTag && a.RefRemap == b.RefRemap {
		copy(field[4:], came[4:])
	}
}
