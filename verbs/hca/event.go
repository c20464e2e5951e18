package hca

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
)

// events is the queue of events that the program has not read. Each waits at most once, so the limits
// of CQs and queue pairs limit the queue too.
type events struct {
	mu      sync.Mutex
	waiting list.List // of verbs.EventReport
	places  map[verbs.EventReport]*list.Element
	ready   chan struct{} // of capacity 1

	// noticed says that the engine has marked a CQ or queue pair as failed. Readers of events look
	// for the mark, since the engine must not wait for a lock.
	noticed atomic.Bool
}

func (e *events) init() {
	e.places = map[verbs.EventReport]*list.Element{}
	e.ready = make(chan struct{}, 1)
}

// put appends an event, and removes the same event if it waits already. So the last event that is
// read tells the present state.
func (e *events) put(r verbs.EventReport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if place := e.places[r]; place != nil {
		e.waiting.MoveToBack(place)
	} else {
		e.places[r] = e.waiting.PushBack(r)
	}
	e.wake()
}

// take gives the oldest event, and wakes the next reader if there are more.
func (e *events) take() (r verbs.EventReport, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest := e.waiting.Front()
	if oldest == nil {
		return r, false
	}
	r = oldest.Value.(verbs.EventReport)
	e.drop(r)
	if e.waiting.Len() > 0 {
		e.wake()
	}
	return r, true
}

// forget drops the events of a CQ or queue pair that is being destroyed.
func (e *events) forget(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(verbs.EventReport{Type: verbs.EventCQErr, EventID: id})
	e.drop(verbs.EventReport{Type: verbs.EventQPFatal, EventID: id})
}

func (e *events) drop(r verbs.EventReport) {
	if place := e.places[r]; place != nil {
		e.waiting.Remove(place)
		delete(e.places, r)
	}
}

func (e *events) wake() {
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// notice is called by the engine, under its lease.
func (e *events) notice(failed *atomic.Bool) {
	failed.Store(true)
	e.noticed.Store(true)
	e.wake()
}

// GetAsyncEvent implements verbs.Provider.
func (s *Session) GetAsyncEvent(ctx context.Context) (verbs.EventReport, error) {
	for {
		if s.events.noticed.Swap(false) {
			s.reportFailed()
		}
		if isClosed(s.stop) {
			return verbs.EventReport{}, verbs.ErrClosed
		}
		if r, ok := s.events.take(); ok {
			return r, nil
		}
		if isClosed(s.done) {
			return verbs.EventReport{}, s.Err()
		}
		select {
		case <-s.events.ready:
		case <-s.done:
		case <-ctx.Done():
			return verbs.EventReport{}, ctx.Err()
		}
	}
}

// reportFailed makes events for the CQs and queue pairs that the engine has marked as failed.
func (s *Session) reportFailed() {
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	for _, c := range s.cqs.all() {
		if c.failed.Swap(false) {
			s.events.put(verbs.EventReport{Type: verbs.EventCQErr, EventID: c.eventID})
		}
	}
	for _, q := range s.qps.all() {
		if q.failed.Swap(false) {
			s.events.put(verbs.EventReport{Type: verbs.EventQPFatal, EventID: q.eventID})
		}
	}
}
