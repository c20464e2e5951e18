package hca

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
)

// events is the queue of events that the program has not read. Each waits at most once, so the limits
// of objects limit the queue too.
type events struct {
	mu      sync.Mutex
	waiting list.List // of verbs.EventReport
	places  map[verbs.EventReport]*list.Element
	ready   chan struct{} // of capacity 1

	// noticed says that the engine has marked an object that has an event. Readers of events look for
	// the mark, since the engine must not wait for a lock.
	noticed atomic.Bool
	tell    func() // SessionConfig.Noticed; nil for none
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

// objectEvents are those of an object, whose EventID they carry.
var objectEvents = []verbs.EventType{
	verbs.EventCQErr, verbs.EventQPFatal, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventCommEst, verbs.EventSQDrained,
	verbs.EventSRQLimitReached, verbs.EventQPLastWQEReached,
}

// noteds is how many types of events the engine can note of a queue pair.
const noteds = verbs.EventQPLastWQEReached + 1

// note is called by the engine, under its lease, when a queue pair has an event.
func (s *Session) note(q *qp, event verbs.EventType) { s.events.notice(&q.noted[event]) }

// forget drops the events of an object that is being destroyed.
func (e *events) forget(id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kind := range objectEvents {
		e.drop(verbs.EventReport{Type: kind, EventID: id})
	}
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
func (e *events) notice(mark *atomic.Bool) {
	mark.Store(true)
	e.noticed.Store(true)
	e.wake()
	if e.tell != nil {
		e.tell()
	}
}

// GetAsyncEvent implements verbs.Provider.
func (s *Session) GetAsyncEvent(ctx context.Context) (verbs.EventReport, error) {
	for {
		s.ReportNoticed()
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

// ReportNoticed makes events for the objects that the engine has marked.
func (s *Session) ReportNoticed() {
	if s.events.noticed.Swap(false) {
		s.card.mu.Lock()
		defer s.card.mu.Unlock()
		s.putNoticed()
	}
}

// putNoticed is ReportNoticed for who holds card.mu.
func (s *Session) putNoticed() {
	for _, c := range s.cqs.all() {
		s.putMarked(&c.failed, c.eventID, ObjectEvent{Kind: ObjectCQ, Number: uint32(c.handle), Type: verbs.EventCQErr})
	}
	for _, q := range s.srqs.all() {
		s.putMarked(&q.reached, q.eventID, ObjectEvent{Kind: ObjectSRQ, Number: uint32(q.handle), Type: verbs.EventSRQLimitReached})
	}
	for _, q := range s.qps.all() {
		number := uint32(q.entry.Number)
		if q.moved.Swap(false) {
			s.observe(ObjectEvent{Kind: ObjectQP, Number: number, Moved: true, State: verbs.QPState(q.state.Load())})
		}
		for _, event := range objectEvents {
			s.putMarked(&q.noted[event], q.eventID, ObjectEvent{Kind: ObjectQP, Number: number, Type: event})
		}
	}
}

// putMarked reports an event if the engine has marked it.
func (s *Session) putMarked(mark *atomic.Bool, id uint64, e ObjectEvent) {
	if mark.Load() && mark.Swap(false) {
		s.events.put(verbs.EventReport{Type: e.Type, EventID: id})
		s.observe(e)
	}
}

func (s *Session) observe(e ObjectEvent) {
	if s.config.Observe != nil {
		s.config.Observe(e)
	}
}
