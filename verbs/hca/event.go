//go:build linux

package hca

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// events is the queue of events that the program has not read.
type events struct {
	mu      sync.Mutex
	waiting provider.Reports
	ready   chan struct{} // of capacity 1

	noted atomic.Pointer[eventSource] // what the engine has noted of objects: a list
	tell  func()                      // SessionConfig.Noticed; nil for none
}

func (e *events) init() {
	e.ready = make(chan struct{}, 1)
}

func (e *events) put(r provider.EventReport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting.Put(r)
	e.wake()
}

// take gives the oldest event, and wakes the next reader if there are more.
func (e *events) take() (r provider.EventReport, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, ok = e.waiting.Take()
	if e.waiting.Len() > 0 {
		e.wake()
	}
	return r, ok
}

// objectEvents are those of an object, whose EventID they carry, in the order in which they are told.
var objectEvents = []verbs.EventType{
	verbs.EventCommEst, verbs.EventSQDrained, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventCQErr, verbs.EventQPFatal,
	verbs.EventQPLastWQEReached, verbs.EventSRQLimitReached,
}

// forget drops the events of an object that is being destroyed. The caller holds card.mu.
func (e *events) forget(from *eventSource) {
	from.gone = true
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kind := range objectEvents {
		e.waiting.Drop(provider.EventReport{Type: kind, EventID: from.id})
	}
}

func (e *events) wake() {
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// GetAsyncEvent implements provider.Provider. After a failure the event of the device comes before the error: it is put
// before done is closed, so what is not there after that does not come.
func (s *Session) GetAsyncEvent(ctx context.Context) (provider.EventReport, error) {
	for {
		last := isClosed(s.life.done)
		s.ReportNoticed()
		if s.life.stopped() {
			return provider.EventReport{}, verbs.ErrClosed
		}
		if r, ok := s.events.take(); ok {
			return r, nil
		}
		if last {
			return provider.EventReport{}, s.Err()
		}
		select {
		case <-s.events.ready:
		case <-s.life.done:
		case <-ctx.Done():
			return provider.EventReport{}, ctx.Err()
		}
	}
}
