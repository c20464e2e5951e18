// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var srqResizeTests = []rig.Test{
	{Name: "SRQ resize", Run: srqResize},
	{Name: "SRQ resizes in a row", Run: srqResizesInARow},
	{Name: "SRQ resized too often", Run: srqTooManyResizes},
	{Name: "SRQ modify", Run: srqModify},
}

// resize changes the capacity of an SRQ.
func resize(t testing.TB, q *verbs.SRQ, receives uint32) {
	t.Helper()
	attr := verbs.SRQAttr{MaxWR: receives}
	rig.Check(t, q.Modify(&attr, verbs.SRQMaxWR))
	if attr.MaxWR != receives {
		t.Errorf("granted %d, want %d", attr.MaxWR, receives)
	}
}

// srqResize checks that a resize keeps the queued receives in order, and that they count towards the new size.
func srqResize(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(4)
	qp := b.Sharer(q, b.CQ)
	b.Give(q, 0, 1, 2)
	resize(t, q, 8)
	b.Give(q, 3, 4, 5, 6, 7)
	rig.Refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
	w.Tell(qp, qp)
	b.Expect(rig.OK(0), rig.OK(1))
	below := verbs.SRQAttr{MaxWR: 5}
	rig.Refused(t, q.Modify(&below, verbs.SRQMaxWR), unix.EINVAL, "max_wr 5")
	rig.Refused(t, q.PostRecv([]verbs.RecvWR{{}, {}, {}}), unix.ENOMEM) // two fit
	w.Tell(qp, qp, qp, qp)
	b.Expect(rig.OK(2), rig.OK(3), rig.OK(4), rig.OK(5))
	resize(t, q, 4)
	rig.Refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
	w.Tell(qp, qp)
	b.Expect(rig.OK(6), rig.OK(7))
	b.Give(q, 10, 11)
	rig.Refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
	w.NothingElse()
}

// srqResizesInARow checks that several resizes in a row keep the order of the receives.
func srqResizesInARow(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(16)
	qp := b.Sharer(q, b.CQ)
	for i := range 8 {
		b.Give(q, i)
		resize(t, q, 16<<(i%3))
	}
	var all []rig.Outcome
	for i := range 8 {
		w.Tell(qp)
		all = append(all, rig.OK(uint64(i)))
	}
	b.Expect(all...)
	for range 200 { // an empty queue
		resize(t, q, 1)
		b.Give(q, 9)
		rig.Refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
		w.Messages(qp, 1)
		b.Expect(rig.OK(9))
	}
	w.NothingElse()
}

// srqTooManyResizes checks the limit on resizes with receives that were queued before them. A consumed receive permits
// another resize.
func srqTooManyResizes(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(256)
	qp := b.Sharer(q, b.CQ)
	resizes := 0
	for i := 0; ; i++ {
		b.Give(q, i)
		err := q.Modify(&verbs.SRQAttr{MaxWR: 256}, verbs.SRQMaxWR)
		if err == nil {
			resizes++
			continue
		}
		rig.Refused(t, err, unix.EBUSY, "resizes")
		break
	}
	if resizes < 8 {
		t.Errorf("%d resizes", resizes)
	}
	w.Messages(qp, 2)
	w.Settle()
	resize(t, q, 256)
	w.Messages(qp, resizes-1)
	for i, wc := range b.Wait(resizes + 1) {
		if wc.ID != uint64(i) {
			t.Errorf("receive %d completed as number %d", wc.ID, i)
		}
	}
	w.NothingElse()
}

// srqModify checks that Modify makes all changes or none, and returns the values that its mask selects.
func srqModify(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(8)
	b.Give(q, 0, 1, 2, 3)
	for _, row := range []struct {
		attr verbs.SRQAttr
		mask verbs.SRQAttrMask
	}{
		{verbs.SRQAttr{MaxWR: 2, Limit: 1}, verbs.SRQMaxWR | verbs.SRQLimit},
		{verbs.SRQAttr{MaxWR: 1 << 30, Limit: 1}, verbs.SRQMaxWR | verbs.SRQLimit},
		{verbs.SRQAttr{MaxWR: 4, Limit: 5}, verbs.SRQMaxWR | verbs.SRQLimit},
		{verbs.SRQAttr{Limit: 9}, verbs.SRQLimit},
		{verbs.SRQAttr{MaxWR: 0}, verbs.SRQMaxWR},
		{verbs.SRQAttr{MaxWR: 16, Limit: 1}, 7},
	} {
		attr := row.attr
		rig.Refused(t, q.Modify(&attr, row.mask), unix.EINVAL)
		if got := queried(t, q); got.MaxWR != 8 || got.Limit != 0 || attr != row.attr {
			t.Errorf("%+v was refused: %+v, %+v", row, got, attr)
		}
	}
	attr := verbs.SRQAttr{MaxWR: 9, MaxSGE: 77, Limit: 3}
	rig.Check(t, q.Modify(&attr, verbs.SRQMaxWR))
	if attr.MaxWR < 9 || attr.MaxSGE != 77 || attr.Limit != 3 {
		t.Errorf("gave %+v", attr)
	}
	rig.Check(t, q.Modify(&attr, verbs.SRQLimit))
	rig.Check(t, q.Modify(&attr, 0))
	if got := queried(t, q); got.Limit != 3 || got.MaxWR != attr.MaxWR || got.MaxSGE < 4 {
		t.Errorf("query gives %+v", got)
	}
	small := verbs.SRQAttr{MaxWR: 2} // less than the queued receives and the limit
	rig.Refused(t, q.Modify(&small, verbs.SRQMaxWR), unix.EINVAL)
	b.NoEvent()
}

func queried(t testing.TB, q *verbs.SRQ) verbs.SRQAttr {
	t.Helper()
	attr, err := q.Query()
	rig.Check(t, err)
	return attr
}
