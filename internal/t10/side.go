// SPDX-License-Identifier: Apache-2.0

package t10

import "math"

// side is the domain of one end of a transfer, with the current position.
type side struct {
	domain   *Domain
	guard    guard // computed on this side; noGuard if not needed
	interval int
	fieldLen int

	block uint64 // counted from 0
	data  int    // bytes of the block's data processed so far
	sum   uint64 // of these bytes
	field field
	at    int // bytes of the field processed so far
}

func newSide(d *Domain) side {
	s := side{domain: d, interval: math.MaxInt, fieldLen: d.FieldLen()}
	if d.Type != SigNone {
		s.interval = int(d.Interval)
	}
	return s
}

// begin moves the side to the start of a block.
func (s *side) begin(block uint64) {
	s.block, s.data, s.at = block, 0, 0
	s.sum = uint64(s.guard.seed)
}

// inField reports whether the next byte belongs to the block's field.
func (s *side) inField() bool { return s.data == s.interval }

// left returns the number of data bytes before the block's field.
func (s *side) left() int { return s.interval - s.data }

// pass processes copied data.
func (s *side) pass(p []byte) {
	if s.fieldLen == 0 {
		return
	}
	if s.guard.kind != noGuard {
		s.sum = s.guard.add(s.sum, p, s.data)
	}
	s.data += len(p)
}

// offset returns the position of a part of the block's field in the message.
func (s *side) offset(at int) uint64 {
	return s.block*uint64(s.interval+s.fieldLen) + uint64(s.interval+at)
}
