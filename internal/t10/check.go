// SPDX-License-Identifier: Apache-2.0

package t10

// check compares the field of the source with the expected one and records the first difference until Forget.
func (t *Transfer) check() {
	if t.failed || t.mask == 0 {
		return
	}
	if s := &t.from; s.domain.Type == SigT10DIF {
		t.checkDIF(s)
	} else {
		t.compare(BadGuard, s.field.sum(), s.guard.value(s.sum), byteMask(t.mask>>4, 4), 0)
	}
}

func (t *Transfer) checkDIF(s *side) {
	d := &s.domain.T10DIF
	if d.escaped(&s.field) {
		return
	}
	appMask := byteMask(t.mask>>4, 2) & uint32(d.AppTagCheckMask)
	_ = t.compare(BadGuard, s.field.guard(), s.guard.value(s.sum), byteMask(t.mask>>6, 2), 0) ||
		t.compare(BadAppTag, uint32(s.field.appTag()), uint32(d.AppTag), appMask, appTagAt) ||
		t.compare(BadRefTag, s.field.refTag(), d.refTagOf(s.block), byteMask(t.mask, 4), refTagAt)
}

// compare records a difference in the bits of the mask and reports whether there is one.
func (t *Transfer) compare(which ErrType, actual, expected, mask uint32, at int) bool {
	if (actual^expected)&mask == 0 {
		return false
	}
	t.failed = true
	t.err = Err{Type: which, Expected: expected, Actual: actual, Offset: t.from.offset(at)}
	return true
}
