// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var srqEventTests = []rig.Test{
	{Name: "SRQ limit", Run: srqLimit},
	{Name: "SRQ limit at once", Run: srqLimitAtOnce},
	{Name: "SRQ limit and resize", Run: srqLimitAndResize},
	{Name: "last WQE", Run: lastWQE},
	{Name: "no events of a closed SRQ", Run: eventsOfClosedSRQ},
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
	rig.Check(t, q.Modify(&verbs.SRQAttr{Limit: limit}, verbs.SRQLimit))
}

// srqLimit checks that a limit causes one event when fewer receives are queued.
func srqLimit(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(8)
	qp := b.Sharer(q, b.CQ)
	b.Give(q, 0, 1, 2, 3, 4, 5, 6, 7)
	arm(t, q, 6)
	w.Tell(qp, qp)
	b.NoEvent() // six are left
	w.Tell(qp)
	b.ExpectEvents(limitReached(q))
	if got := queried(t, q); got.Limit != 0 {
		t.Errorf("the limit is %d after its event", got.Limit)
	}
	w.Tell(qp)
	b.NoEvent() // it is not armed
	b.Give(q, 0, 1, 2, 3)
	w.Tell(qp, qp, qp)
	b.NoEvent()
	arm(t, q, 3)
	arm(t, q, 0)
	w.Tell(qp, qp, qp)
	b.NoEvent() // not armed again
	b.Wait(10)
	w.NothingElse()
}

// srqLimitAtOnce checks that a limit above the number of queued receives causes its event immediately.
func srqLimitAtOnce(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(8)
	arm(t, q, 1)
	b.ExpectEvents(limitReached(q))
	b.Give(q, 0, 1)
	arm(t, q, 2)
	b.NoEvent()
	arm(t, q, 3)
	b.ExpectEvents(limitReached(q))
	b.NoEvent()
}

// srqLimitAndResize checks that receives queued before a resize count too.
func srqLimitAndResize(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(4)
	qp := b.Sharer(q, b.CQ)
	b.Give(q, 0, 1, 2, 3)
	rig.Check(t, q.Modify(&verbs.SRQAttr{MaxWR: 8, Limit: 4}, verbs.SRQMaxWR|verbs.SRQLimit))
	b.Give(q, 4, 5)
	w.Tell(qp, qp)
	b.NoEvent()
	w.Tell(qp)
	b.ExpectEvents(limitReached(q))
	b.Expect(rig.OK(0), rig.OK(1), rig.OK(2))
}

// lastWQE checks that a queue pair with an SRQ that changes to ERR, by Modify or after an error, has a "last WQE
// reached" event. A queue pair with its own receive queue has none.
func lastWQE(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(rig.Depth)
	first, second, own := b.Sharer(q, b.CQ), b.Sharer(q, b.CQ), b.Active(rig.DefaultCap())
	rig.To(t, own, verbs.QPStateErr)
	b.NoEvent()
	b.Give(q, 0)
	w.Tell(first)
	rig.To(t, first, verbs.QPStateErr)
	rig.To(t, first, verbs.QPStateErr)
	b.ExpectEvents(lastReached(first))
	rig.Same(t, rig.Completions(t, b.CQ), rig.OK(0)) // the completion precedes the event
	rig.Check(t, q.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{{LKey: 12345, Length: rig.SlotLen}}}}))
	w.Tell(second)
	b.ExpectEvents(lastReached(second))
	rig.Same(t, rig.Completions(t, b.CQ), rig.Ended(5, verbs.WCLocProtErr))
	b.NoEvent()
	w.NothingElse()
}

// eventsOfClosedSRQ checks that closed objects have no events.
func eventsOfClosedSRQ(t *testing.T, w *rig.World) {
	for range 10 {
		q := w.B.NewSRQ(1)
		qp := w.B.Sharer(q, w.B.CQ)
		arm(t, q, 1)
		rig.To(t, qp, verbs.QPStateErr)
		rig.Check(t, qp.Close())
		rig.Check(t, q.Close())
	}
	w.B.NoEvent()
}
