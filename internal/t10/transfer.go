// SPDX-License-Identifier: Apache-2.0

package t10

// Transfer moves a message from one domain to the other in slices. A copy of a Transfer saves the position, to return
// to it. A Transfer has pointers to its Attrs, which must not change while it is used.
type Transfer struct {
	mask     uint8
	from, to side
	copied   copied
	made     bool // the field at to is complete
	failed   bool
	err      Err
}

// copied lists the parts of a field that are copied unchanged.
type copied struct{ guard, app, ref bool }

// Send returns a transfer from memory to the wire. The attributes must have passed Check.
func (a *Attrs) Send() Transfer { return newTransfer(a.CheckMask, &a.Mem, &a.Wire) }

// Receive returns a transfer from the wire to memory. The attributes must have passed Check.
func (a *Attrs) Receive() Transfer { return newTransfer(a.CheckMask, &a.Wire, &a.Mem) }

func newTransfer(mask uint8, from, to *Domain) Transfer {
	t := Transfer{mask: mask, from: newSide(from), to: newSide(to), copied: passed(from, to)}
	guardBits := uint8(CheckGuard)
	if from.Type != SigT10DIF {
		guardBits = CheckCRC
	}
	if mask&guardBits != 0 {
		t.from.guard = from.guard()
	}
	if !t.copied.guard {
		t.to.guard = to.guard()
	}
	t.from.begin(0)
	t.to.begin(0)
	return t
}

// passed returns the parts of a field that two domains define alike.
func passed(from, to *Domain) copied {
	if from.Type != to.Type || from.Interval != to.Interval || from.Type == SigNone {
		return copied{}
	}
	c := copied{guard: from.guard() == to.guard()}
	if from.Type == SigT10DIF {
		a, b := &from.T10DIF, &to.T10DIF
		c.app = a.AppTag == b.AppTag
		c.ref = a.RefTag == b.RefTag && a.RefRemap == b.RefRemap
	}
	return c
}

// Move moves as much as both slices permit. It returns the number of bytes written to the destination and
// read from the source. The guard is computed over the written bytes, even if the source changes
// concurrently.
func (t *Transfer) Move(dst, src []byte) (put, took int) {
	return t.move(dst, len(dst), src)
}

// Discard is like Move without a destination: it discards at most n bytes.
func (t *Transfer) Discard(n int, src []byte) (put, took int) {
	return t.move(nil, n, src)
}

// move moves at most room bytes; a nil destination discards them.
func (t *Transfer) move(dst []byte, room int, src []byte) (put, took int) {
	for {
		var n, m int
		switch {
		case t.from.inField():
			n = t.readField(src[took:])
		case t.to.inField():
			m = t.writeField(dst, put, room)
		default:
			n = min(len(src)-took, room-put, t.from.left(), t.to.left())
			data := src[took : took+n]
			if dst != nil {
				to := dst[put : put+n]
				copy(to, data)
				data = to
			}
			t.from.pass(data)
			t.to.pass(data)
			m = n
		}
		put, took = put+m, took+n
		if n == 0 && m == 0 {
			return put, took
		}
	}
}

// readField reads the source's field, or the available part of it.
func (t *Transfer) readField(src []byte) int {
	s := &t.from
	n := copy(s.field[s.at:s.fieldLen], src)
	if s.at += n; s.at < s.fieldLen {
		return n
	}
	t.check()
	if t.to.inField() {
		t.makeField()
	}
	s.begin(s.block + 1)
	return n
}

// writeField writes the destination's field, or as much as fits.
func (t *Transfer) writeField(dst []byte, put, room int) int {
	s := &t.to
	if !t.made {
		t.makeField()
	}
	n := min(room-put, s.fieldLen-s.at)
	if dst != nil {
		copy(dst[put:put+n], s.field[s.at:])
	}
	if s.at += n; s.at == s.fieldLen {
		t.made = false
		s.begin(s.block + 1)
	}
	return n
}

// makeField generates the destination's field, with the source's parts where both are defined alike.
func (t *Transfer) makeField() {
	t.made = true
	s := &t.to
	if s.domain.Type != SigT10DIF {
		if s.field = t.from.field; !t.copied.guard {
			s.field.setSum(s.guard.value(s.sum))
		}
		return
	}
	s.field = t.from.field
	if !t.copied.guard {
		s.field.setGuard(s.guard.value(s.sum))
	}
	if !t.copied.app {
		s.field.setAppTag(s.domain.T10DIF.AppTag)
	}
	if !t.copied.ref {
		s.field.setRefTag(s.domain.T10DIF.refTagOf(s.block))
	}
}

// Failed returns the first block that failed its check since the start of the transfer or the last Forget.
func (t *Transfer) Failed() (Err, bool) { return t.err, t.failed }

// Forget discards the recorded failure, so that the next one is recorded.
func (t *Transfer) Forget() { t.failed = false }

// Whole reports whether the transfer is between two blocks on both sides, where a message may end.
func (t *Transfer) Whole() bool {
	between := func(s *side) bool { return s.fieldLen == 0 || s.data == 0 }
	return between(&t.from) && between(&t.to)
}

// NextSource returns whether the source must supply bytes of a field or of data next, and their number, for
// memory with separate fields. Without fields it is data without limit.
func (t *Transfer) NextSource() (inField bool, n int) { return t.from.next() }

// NextDestination is NextSource for the destination.
func (t *Transfer) NextDestination() (inField bool, n int) { return t.to.next() }

func (s *side) next() (inField bool, n int) {
	if s.inField() {
		return true, s.fieldLen - s.at
	}
	return false, s.left()
}
