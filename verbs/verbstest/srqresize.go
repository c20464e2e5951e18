package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var srqResizeTests = []test{
	{name: "SRQ resize", run: srqResize},
	{name: "SRQ resizes in a row", run: srqResizesInARow},
	{name: "SRQ resized too often", run: srqTooManyResizes},
	{name: "SRQ modify", run: srqModify},
}

// resize changes how many receives an SRQ has room for.
func resize(t testing.TB, q *verbs.SRQ, receives uint32) {
	t.Helper()
	attr := verbs.SRQAttr{MaxWR: receives}
	check(t, q.Modify(&attr, verbs.SRQMaxWR))
	if attr.MaxWR != receives {
		t.Errorf("granted %d, want %d", attr.MaxWR, receives)
	}
}

// A resize keeps what is queued, in order, and counts it: there is room for what is asked for, in all.
func srqResize(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(4)
	qp := b.sharer(q, b.cq)
	b.give(q, 0, 1, 2)
	resize(t, q, 8)
	b.give(q, 3, 4, 5, 6, 7)
	refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
	w.tell(qp, qp)
	b.expect(ok(0), ok(1))
	below := verbs.SRQAttr{MaxWR: 5}
	refused(t, q.Modify(&below, verbs.SRQMaxWR), unix.EINVAL, "max_wr 5")
	refused(t, q.PostRecv([]verbs.RecvWR{{}, {}, {}}), unix.ENOMEM) // after two
	w.tell(qp, qp, qp, qp)
	b.expect(ok(2), ok(3), ok(4), ok(5))
	resize(t, q, 4)
	refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
	w.tell(qp, qp)
	b.expect(ok(6), ok(7))
	b.give(q, 10, 11)
	refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
	w.nothingElse()
}

// However often a queue is resized before anything is taken, the order stays.
func srqResizesInARow(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(16)
	qp := b.sharer(q, b.cq)
	for i := range 8 {
		b.give(q, i)
		resize(t, q, 16<<(i%3))
	}
	var all []outcome
	for i := range 8 {
		w.tell(qp)
		all = append(all, ok(uint64(i)))
	}
	b.expect(all...)
	for range 200 { // of an empty queue, too
		resize(t, q, 1)
		b.give(q, 9)
		refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.ENOMEM)
		w.messages(qp, 1)
		b.expect(ok(9))
	}
	w.nothingElse()
}

// Only so many resizes can have receives from before them; a message makes room for another.
func srqTooManyResizes(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(256)
	qp := b.sharer(q, b.cq)
	resizes := 0
	for i := 0; ; i++ {
		b.give(q, i)
		err := q.Modify(&verbs.SRQAttr{MaxWR: 256}, verbs.SRQMaxWR)
		if err == nil {
			resizes++
			continue
		}
		refused(t, err, unix.EBUSY, "resizes")
		break
	}
	if resizes < 8 {
		t.Errorf("%d resizes", resizes)
	}
	w.messages(qp, 2)
	w.settle()
	resize(t, q, 256)
	w.messages(qp, resizes-1)
	for i, wc := range b.wait(resizes + 1) {
		if wc.ID != uint64(i) {
			t.Errorf("receive %d came as number %d", wc.ID, i)
		}
	}
	w.nothingElse()
}

// messages sends some from a to a queue pair of b.
func (w *world) messages(qp *verbs.QP, n int) {
	w.a.Helper()
	ah := w.a.ah(w.b.end.IPv4)
	for range n {
		w.a.post(w.a.send(1, ah, qp))
		w.a.expect(ok(1))
	}
	check(w.a, ah.Close())
}

// Modify makes the whole change or none, and gives the values that its mask selects.
func srqModify(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(8)
	b.give(q, 0, 1, 2, 3)
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
		refused(t, q.Modify(&attr, row.mask), unix.EINVAL)
		if got := queried(t, q); got.MaxWR != 8 || got.Limit != 0 || attr != row.attr {
			t.Errorf("%+v was refused: %+v, %+v", row, got, attr)
		}
	}
	attr := verbs.SRQAttr{MaxWR: 9, MaxSGE: 77, Limit: 3}
	check(t, q.Modify(&attr, verbs.SRQMaxWR))
	if attr.MaxWR < 9 || attr.MaxSGE != 77 || attr.Limit != 3 {
		t.Errorf("gave %+v", attr)
	}
	check(t, q.Modify(&attr, verbs.SRQLimit))
	check(t, q.Modify(&attr, 0))
	if got := queried(t, q); got.Limit != 3 || got.MaxWR != attr.MaxWR || got.MaxSGE < 4 {
		t.Errorf("query gives %+v", got)
	}
	small := verbs.SRQAttr{MaxWR: 2} // less than the receives, and than the limit
	refused(t, q.Modify(&small, verbs.SRQMaxWR), unix.EINVAL)
	b.noEvent()
}

func queried(t testing.TB, q *verbs.SRQ) verbs.SRQAttr {
	t.Helper()
	attr, err := q.Query()
	check(t, err)
	return attr
}
