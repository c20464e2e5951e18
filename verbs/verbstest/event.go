package verbstest

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
)

var eventTests = []test{
	{name: "no event of a completion", run: noEventOfACompletion},
	{name: "events wake readers", run: eventsWakeReaders},
	{name: "waiting for an event ends", run: eventWaitEnds},
	{name: "unread events", run: unreadEvents},
	{name: "no events of closed objects", run: eventsOfClosedObjects},
}

// event waits for the next one.
func (s *station) event() verbs.AsyncEvent {
	s.Helper()
	event, err := s.ctx.GetAsyncEvent(guard(s))
	check(s, err)
	return event
}

// expectEvents reads events and compares them in their order.
func (s *station) expectEvents(want ...verbs.AsyncEvent) {
	s.Helper()
	for i, w := range want {
		if got := s.event(); got != w {
			s.Errorf("event %d: %v %+v, want %v %+v", i, got.Type, got, w.Type, w)
		}
	}
}

// noEvent checks that none waits.
func (s *station) noEvent() {
	s.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 20 { // of several that are ready a select takes any
		if event, err := s.ctx.GetAsyncEvent(ended); !errors.Is(err, context.Canceled) {
			s.Errorf("event %v, %v", event.Type, err)
		}
	}
}

func cqErr(cq *verbs.CQ) verbs.AsyncEvent { return verbs.AsyncEvent{Type: verbs.EventCQErr, CQ: cq} }

func qpFatal(qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: verbs.EventQPFatal, QP: qp}
}

// A completion tells of an error that is one request's: there is no event of it.
func noEventOfACompletion(t *testing.T, w *world) {
	a, b := w.a, w.b
	check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 7, SGList: []verbs.SGE{{LKey: 12345, Length: slotLen}}}}))
	a.post(a.send(1, a.ah(b.end.IPv4), b.qp))
	b.expect(outcome{7, verbs.WCLocProtErr})
	b.noEvent()
}

// Readers are woken by what the card does, each by one event.
func eventsWakeReaders(t *testing.T, w *world) {
	cq, qps := w.b.overrunnable(2)
	got := make(chan verbs.AsyncEvent, 3)
	done := waiting(guard(t), t, 3, func(ctx context.Context) error {
		event, err := w.b.ctx.GetAsyncEvent(ctx)
		got <- event
		return err
	})
	w.overrun(qps[0], cq, 1)
	want := map[verbs.AsyncEvent]bool{cqErr(cq): true, qpFatal(qps[0]): true, qpFatal(qps[1]): true}
	for range 3 {
		check(t, <-done)
		if event := <-got; !want[event] {
			t.Errorf("%v, twice or of another", event.Type)
		} else {
			delete(want, event)
		}
	}
}

// Waiting for an event ends with the caller's context, and with Close.
func eventWaitEnds(t *testing.T, w *world) {
	read := func(ctx context.Context) error {
		_, err := w.a.ctx.GetAsyncEvent(ctx)
		return err
	}
	ctx, cancel := context.WithCancel(guard(t))
	done := waiting(ctx, t, 1, read)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	done = waiting(guard(t), t, 3, read)
	check(t, w.a.ctx.Close())
	for range 3 {
		refused(t, <-done, verbs.ErrClosed)
	}
	refused(t, read(guard(t)), verbs.ErrClosed)
}

// What was not read when the session is closed is gone.
func unreadEvents(t *testing.T, w *world) {
	cq, qps := w.b.overrunnable(1)
	w.overrun(qps[0], cq, 1)
	w.settle()
	check(t, w.b.ctx.Close())
	_, err := w.b.ctx.GetAsyncEvent(guard(t))
	refused(t, err, verbs.ErrClosed)
}

// There are no events of what has been closed.
func eventsOfClosedObjects(t *testing.T, w *world) {
	for range 10 {
		cq, qps := w.b.overrunnable(2)
		w.overrun(qps[0], cq, 1)
		w.settle()
		check(t, errors.Join(qps[0].Close(), qps[1].Close(), cq.Close()))
	}
	w.b.noEvent()
}
