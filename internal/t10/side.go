package t10

import "math"

// side is a domain as one end of a transfer: where in its blocks the transfer stands.
type side struct {
	domain   *Domain
	guard    guard // computed on this side; noGuard if nobody asks for it
	interval int
	fieldLen int

	block uint64 // counted from 0
	data  int    // bytes of the block's data that have passed
	sum   uint64 // of them
	field field
	at    int // bytes of the field that have passed
}

func newSide(d *Domain) side {
	s := side{domain: d, interval: math.MaxInt, fieldLen: d.FieldLen()}
	if d.Type != SigNone {
		s.interval = int(d.Interval)
	}
	return s
}

// begin puts the side at the beginning of a block.
func (s *side) begin(block uint64) {
	s.block, s.data, s.at = block, 0, 0
	s.sum = uint64(s.guard.seed)
}

// inField says whether what comes next is the block's field, or the rest of it.
func (s *side) inField() bool { return s.data == s.interval }

// left is how many bytes of data are to come before the block's field.
func (s *side) left() int { return s.interval - s.data }

// pass takes data into account, which has been copied.
func (s *side) pass(p []byte) {
	if s.fieldLen == 0 {
		return
	}
	if s.guard.kind != noGuard {
		s.sum = s.guard.add(s.sum, p, s.data)
	}
	s.data += len(p)
}

// offset is where a place of the block's field is in the message.
func (s *side) offset(at int) uint64 {
	return s.block*uint64(s.interval+s.fieldLen) + uint64(s.interval+at)
}
