package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
)

var srqEventTests = []test{
	{name: "SRQ limit", run: srqLimit},
	{name: "SRQ limit at once", run: srqLimitAtOnce},
	{name: "SRQ limit and resize", run: srqLimitAndResize},
	{name: "last WQE", run: lastWQE},
	{name: "no events of a closed SRQ", run: eventsOfClosedSRQ},
}

func limitReached(q *verbs.SRQ) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: verbs.EventSRQLimitReached, SRQ: q}
}

func lastReached(qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: verbs.EventQPLastWQEReached, QP: qp}
}

// arm sets an SRQ's limit.
func arm(t testing.TB, q *verbs.SRQ, limit uint32) {
	t.Helper()
	check(t, q.Modify(&verbs.SRQAttr{Limit: limit}, verbs.SRQLimit))
}

// The event comes once an arming, when fewer receives than the limit are left.
func srqLimit(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(8)
	qp := b.sharer(q, b.cq)
	b.give(q, 0, 1, 2, 3, 4, 5, 6, 7)
	arm(t, q, 6)
	w.tell(qp, qp)
	b.noEvent() // six are left
	w.tell(qp)
	b.expectEvents(limitReached(q))
	if got := queried(t, q); got.Limit != 0 {
		t.Errorf("the limit is %d after its event", got.Limit)
	}
	w.tell(qp)
	b.noEvent() // it is not armed
	b.give(q, 0, 1, 2, 3)
	w.tell(qp, qp, qp)
	b.noEvent()
	arm(t, q, 3)
	arm(t, q, 0)
	w.tell(qp, qp, qp)
	b.noEvent() // disarmed
	b.wait(10)
	w.nothingElse()
}

// A queue that is armed when it has too few receives already has its event at once.
func srqLimitAtOnce(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(8)
	arm(t, q, 1)
	b.expectEvents(limitReached(q))
	b.give(q, 0, 1)
	arm(t, q, 2)
	b.noEvent()
	arm(t, q, 3)
	b.expectEvents(limitReached(q))
	b.noEvent()
}

// What waits in a queue that a resize has replaced counts too.
func srqLimitAndResize(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(4)
	qp := b.sharer(q, b.cq)
	b.give(q, 0, 1, 2, 3)
	check(t, q.Modify(&verbs.SRQAttr{MaxWR: 8, Limit: 4}, verbs.SRQMaxWR|verbs.SRQLimit))
	b.give(q, 4, 5)
	w.tell(qp, qp)
	b.noEvent()
	w.tell(qp)
	b.expectEvents(limitReached(q))
	b.expect(ok(0), ok(1), ok(2))
}

// A queue pair with an SRQ that goes to ERR, by Modify or by an error, takes no more receives: the
// event says so. One with a queue of its own has no such event.
func lastWQE(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(depth)
	first, second, own := b.sharer(q, b.cq), b.sharer(q, b.cq), b.active(defaultCap())
	to(t, own, verbs.QPStateErr)
	b.noEvent()
	b.give(q, 0)
	w.tell(first)
	to(t, first, verbs.QPStateErr)
	to(t, first, verbs.QPStateErr)
	b.expectEvents(lastReached(first))
	same(t, completions(t, b.cq), ok(0)) // those that it took are there
	check(t, q.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{{LKey: 12345, Length: slotLen}}}}))
	w.tell(second)
	b.expectEvents(lastReached(second))
	same(t, completions(t, b.cq), outcome{5, verbs.WCLocProtErr})
	b.noEvent()
	w.nothingElse()
}

// There are no events of what has been closed.
func eventsOfClosedSRQ(t *testing.T, w *world) {
	for range 10 {
		q := w.b.newSRQ(1)
		qp := w.b.sharer(q, w.b.cq)
		arm(t, q, 1)
		to(t, qp, verbs.QPStateErr)
		check(t, qp.Close())
		check(t, q.Close())
	}
	w.b.noEvent()
}
