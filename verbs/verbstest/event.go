// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var eventTests = []rig.Test{
	{Name: "no event of a completion", Run: noEventOfACompletion},
	{Name: "events wake readers", Run: eventsWakeReaders},
	{Name: "waiting for an event ends", Run: eventWaitEnds},
	{Name: "unread events", Run: unreadEvents},
	{Name: "no events of closed objects", Run: eventsOfClosedObjects},
}

func cqErr(cq *verbs.CQ) verbs.AsyncEvent { return verbs.AsyncEvent{Type: verbs.EventCQErr, CQ: cq} }

func qpFatal(qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: verbs.EventQPFatal, QP: qp}
}

// An error of one request is reported by its completion, without an event.
func noEventOfACompletion(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 7, SGList: []verbs.SGE{{LKey: 12345, Length: rig.SlotLen}}}}))
	a.Post(a.Send(1, a.AH(b.End.IPv4), b.QP))
	b.Expect(rig.Ended(7, verbs.WCLocProtErr))
	b.NoEvent()
}

// Each event of the card wakes one waiting reader.
func eventsWakeReaders(t *testing.T, w *rig.World) {
	cq, qps := w.B.Overrunnable(2)
	got := make(chan verbs.AsyncEvent, 3)
	done := rig.Waiting(rig.Guard(t), t, 3, func(ctx context.Context) error {
		event, err := w.B.Ctx.GetAsyncEvent(ctx)
		got <- event
		return err
	})
	w.Overrun(qps[0], cq, 1)
	want := map[verbs.AsyncEvent]bool{cqErr(cq): true, qpFatal(qps[0]): true, qpFatal(qps[1]): true}
	for range 3 {
		rig.Check(t, <-done)
		if event := <-got; !want[event] {
			t.Errorf("duplicate or unexpected event %v", event.Type)
		} else {
			delete(want, event)
		}
	}
}

// Waiting for an event ends with the caller's context, and with Close.
func eventWaitEnds(t *testing.T, w *rig.World) {
	read := func(ctx context.Context) error {
		_, err := w.A.Ctx.GetAsyncEvent(ctx)
		return err
	}
	ctx, cancel := context.WithCancel(rig.Guard(t))
	done := rig.Waiting(ctx, t, 1, read)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	done = rig.Waiting(rig.Guard(t), t, 3, read)
	rig.Check(t, w.A.Ctx.Close())
	for range 3 {
		rig.Refused(t, <-done, verbs.ErrClosed)
	}
	rig.Refused(t, read(rig.Guard(t)), verbs.ErrClosed)
}

// Unread events are dropped when the session is closed.
func unreadEvents(t *testing.T, w *rig.World) {
	cq, qps := w.B.Overrunnable(1)
	w.Overrun(qps[0], cq, 1)
	w.Settle()
	rig.Check(t, w.B.Ctx.Close())
	_, err := w.B.Ctx.GetAsyncEvent(rig.Guard(t))
	rig.Refused(t, err, verbs.ErrClosed)
}

// Closed objects have no events.
func eventsOfClosedObjects(t *testing.T, w *rig.World) {
	for range 10 {
		cq, qps := w.B.Overrunnable(2)
		w.Overrun(qps[0], cq, 1)
		w.Settle()
		rig.Check(t, errors.Join(qps[0].Close(), qps[1].Close(), cq.Close()))
	}
	w.B.NoEvent()
}
