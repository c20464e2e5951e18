// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// event waits for the next event.
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

// noEvent checks that no event is queued.
func (s *station) noEvent() {
	s.Helper()
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	for range 20 { // of several ready cases a select chooses any
		if event, err := s.ctx.GetAsyncEvent(ended); !errors.Is(err, context.Canceled) {
			s.Errorf("event %v, %v", event.Type, err)
		}
	}
}

var (
	portErr    = verbs.AsyncEvent{Type: verbs.EventPortErr, Port: 1}
	portActive = verbs.AsyncEvent{Type: verbs.EventPortActive, Port: 1}
	mtuChange  = verbs.AsyncEvent{Type: verbs.EventMTUChange, Port: 1}
	gidChange  = verbs.AsyncEvent{Type: verbs.EventGIDChange, Port: 1}
)

func cqErr(cq *verbs.CQ) verbs.AsyncEvent { return verbs.AsyncEvent{Type: verbs.EventCQErr, CQ: cq} }

func qpFatal(qp *verbs.QP) verbs.AsyncEvent {
	return verbs.AsyncEvent{Type: verbs.EventQPFatal, QP: qp}
}

// host returns the host of a station on an in-memory network.
func (s *station) host() *memnet.Host { return s.device.host.(*memnet.Host) }

func (s *station) link(up bool) { s.host().SetUp(up) }

func (s *station) addresses(list ...netip.Addr) {
	s.Helper()
	check(s, s.host().SetAddresses(list...))
}

func (s *station) mtu(bytes int) {
	s.Helper()
	check(s, s.host().SetMTU(bytes))
}

// Each change causes one event, and unchanged state causes none.
func TestPortEvents(t *testing.T) {
	a := newStillPair(t).a
	a.device.follower.look(everything())
	a.noEvent()
	a.link(false)
	a.device.follower.look(everything())
	a.expectEvents(portErr)
	a.noEvent()
	a.link(true)
	a.expectEvents(portActive)
	a.noEvent()
	a.addresses(addressesA[0], address("10.0.0.9"))
	a.device.follower.look(everything())
	a.expectEvents(gidChange)
	a.mtu(300) // too small for any RDMA MTU
	a.device.follower.look(everything())
	a.expectEvents(portErr)
	a.mtu(1500)
	a.expectEvents(portActive, mtuChange)
	a.mtu(1501) // the same RDMA MTU
	a.noEvent()
}

// While no goroutine reads, at most one event of each kind is kept, and the last event read reflects the current state
// of the port.
func TestEventsAreKeptOnce(t *testing.T) {
	a := newStillPair(t).a
	for i := range 1000 {
		a.link(false)
		a.link(true)
		a.addresses(addressesA[:1+i%2]...)
	}
	if n := a.device.session.events.rest.waiting.Len(); n != 3 {
		t.Errorf("%d events are queued", n)
	}
	a.link(false)
	a.expectEvents(portActive, gidChange, portErr)
	a.noEvent()
	if n := a.device.session.events.rest.waiting.Len(); n != 0 {
		t.Errorf("%d events are kept", n)
	}
}

// overrunnable creates a CQ of four entries, and queue pairs that complete to it.
func (s *station) overrunnable(n int) (*verbs.CQ, []*verbs.QP) {
	s.Helper()
	cq, err := s.ctx.CreateCQ(4)
	check(s, err)
	var qps []*verbs.QP
	for range n {
		qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: cq, Cap: defaultCap()})
		check(s, err)
		check(s, qp.Activate(testQKey))
		qps = append(qps, qp)
	}
	return cq, qps
}

// overrun sends a queue pair one message more than its CQ holds.
func (w *wirePair) overrun(t *testing.T, qp *verbs.QP) {
	t.Helper()
	wr := w.a.send(1, w.a.ah("10.0.0.2"), w.b)
	wr.RemoteQPN = qp.Number()
	for i := range 5 {
		check(t, qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{w.b.piece(i, slotLen)}}}))
		w.a.post(wr)
	}
	w.run()
	w.a.completions()
}

// Closed objects have no events, and none are kept for them.
func TestEventsOfClosedObjects(t *testing.T) {
	w := newStillPair(t)
	for range 10 {
		cq, qps := w.b.overrunnable(2)
		w.overrun(t, qps[0])
		w.b.device.session.ReportNoticed() // as a reader would
		if n := w.b.device.session.events.rest.waiting.Len(); n != 3 {
			t.Fatalf("%d events are queued", n)
		}
		check(t, errors.Join(qps[0].Close(), qps[1].Close(), cq.Close()))
		if n := w.b.device.session.events.rest.waiting.Len(); n != 0 {
			t.Errorf("%d events of closed objects", n)
		}
	}
	// A card may still report them if both happen at once.
	cq, qps := w.b.overrunnable(1)
	w.overrun(t, qps[0])
	var late []provider.EventReport
	for range 2 {
		report, err := w.b.device.GetAsyncEvent(guard(t))
		check(t, err)
		late = append(late, report)
	}
	check(t, errors.Join(qps[0].Close(), cq.Close()))
	for _, report := range late {
		w.b.device.session.events.put(report)
	}
	w.b.link(false)
	w.b.expectEvents(portErr)
}

// Events, failing and closing at once, for the race detector.
func TestEventsRace(t *testing.T) {
	for range 20 {
		w := newWirePair(t)
		done := make(chan error)
		for range 2 {
			go func() {
				for {
					if _, err := w.a.ctx.GetAsyncEvent(guard(t)); err != nil {
						done <- err
						return
					}
				}
			}()
		}
		go func() {
			for i := range 20 {
				w.a.link(i%2 == 0)
			}
			w.a.device.fail(network.ErrGone)
			done <- nil
		}()
		cq, err := w.a.ctx.CreateCQ(4)
		for err == nil {
			if err = cq.Close(); err == nil {
				cq, err = w.a.ctx.CreateCQ(4)
			}
		}
		refused(t, err, verbs.ErrDeviceFatal)
		for range 3 {
			if err := <-done; err != nil {
				refused(t, err, verbs.ErrDeviceFatal)
			}
		}
	}
}

// One wake-up stands for all queued events: a reader that is woken wakes the next.
func TestEventWakesTheNextReader(t *testing.T) {
	var s Session
	s.events.init(&s.life, s.Err)
	e := &s.events.rest
	for id := range uint64(3) {
		s.events.put(provider.EventReport{Type: verbs.EventCQErr, EventID: 1 + id})
	}
	for id := uint64(1); id <= 3; id++ {
		select {
		case <-e.ready:
		default:
			t.Fatalf("no reader was woken for event %d", id)
		}
		var got uint64
		if some := e.pass(func(r provider.EventReport) bool { got = r.EventID; return true }); !some || got != id {
			t.Errorf("got event %d, want %d", got, id)
		}
	}
	select {
	case <-e.ready:
		t.Error("a reader was woken without an event")
	default:
	}
}

// TestEventQueues: an object's events go to the queue that has its EventID, and the device's events go to every queue.
// Events noted by the engine wake the readers of that queue. The objects of a closed queue go back to GetAsyncEvent.
func TestEventQueues(t *testing.T) {
	w := newStillPair(t)
	s := w.b.device.session
	waiting := func(q *EventQueue) (ids []uint64) {
		t.Helper()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		s.ReportNoticed()
		for q.waiting.Len() > 0 {
			check(t, q.Pass(ended, func(r provider.EventReport) bool { ids = append(ids, r.EventID); return true }))
		}
		return ids
	}
	open := func(first, last uint64) *EventQueue {
		t.Helper()
		q, err := s.OpenEvents(first, last)
		check(t, err)
		return q
	}
	high, low := open(1<<40, 1<<41), open(1, 1<<20)
	const all = ^uint64(0)
	for _, bad := range [][2]uint64{{0, 5}, {6, 5}, {0, 0}, {all, 1}} {
		_, err := s.OpenEvents(bad[0], bad[1])
		refused(t, err, verbs.ErrInvalid)
	}
	for _, taken := range [][2]uint64{{1, 1}, {1 << 20, 1 << 20}, {2, 1 << 21}, {1, all}, {1 << 41, all}, {1<<40 - 1, 1 << 40}} {
		_, err := s.OpenEvents(taken[0], taken[1])
		refused(t, err, verbs.ErrBusy)
	}
	cq, qps := w.b.overrunnable(2)
	w.overrun(t, qps[0])
	select { // woken before any read
	case <-low.ready:
	default:
		t.Error("no wake-up for events that the engine has noted")
	}
	s.ReportNoticed()
	w.b.link(false)
	if got := waiting(low); len(got) != 4 || got[3] != 0 {
		t.Errorf("got events of %v, want those of three objects and the port", got)
	}
	for name, q := range map[string]*EventQueue{"high": high, "rest": &s.events.rest} {
		if got := waiting(q); !slices.Equal(got, []uint64{0}) {
			t.Errorf("%s: got events of %v, want only the port's", name, got)
		}
	}
	low.Close()
	s.events.put(provider.EventReport{Type: verbs.EventCQErr, EventID: 5})
	if got := waiting(&s.events.rest); !slices.Equal(got, []uint64{5}) {
		t.Errorf("without its own queue: got events of %v", got)
	}
	open(1, 5).Close()
	check(t, errors.Join(qps[0].Close(), qps[1].Close(), cq.Close()))
}

// TestEventQueuesHaveABound: the number of a session's queues is limited, and closing one makes room.
func TestEventQueuesHaveABound(t *testing.T) {
	s := newStillPair(t).a.device.session
	var last *EventQueue
	for id := range uint64(maxEventQueues) {
		q, err := s.OpenEvents(1+id, 1+id)
		check(t, err)
		last = q
	}
	_, err := s.OpenEvents(1<<40, 1<<40)
	refused(t, err, verbs.ErrLimit)
	last.Close()
	_, err = s.OpenEvents(1<<40, 1<<40)
	check(t, err)
}
