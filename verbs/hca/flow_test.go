// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
)

// Posting and polling allocate nothing.
func TestNoAllocations(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	recv := []verbs.RecvWR{{SGList: []verbs.SGE{b.piece(0, slotLen)}}}
	plain, inline := a.send(1, a.ah("10.0.0.2"), b, a.piece(0, 64), a.piece(1, 64)), a.send(2, a.ah("fd00::2"), b, a.piece(0, 60))
	inline.Flags |= verbs.SendInline
	send := []verbs.SendWR{plain, inline}
	var wcs [4]verbs.WC
	round := func() {
		errs := [...]error{b.qp.PostRecv(recv), b.qp.PostRecv(recv), a.qp.PostSend(send)}
		if errs != [3]error{} {
			t.Fatal(errs)
		}
		sent, _ := a.cq.Poll(wcs[:])
		got, _ := b.cq.Poll(wcs[:])
		if sent != 2 || got != 2 {
			t.Fatalf("sent %d, received %d", sent, got)
		}
	}
	round()
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("got %v allocations per round, want 0", n)
	}
	full := func() { _ = a.qp.PostSend(nil); _ = b.qp.PostRecv(nil) }
	if n := testing.AllocsPerRun(100, full); n != 0 {
		t.Errorf("got %v allocations for an empty list, want 0", n)
	}
}
