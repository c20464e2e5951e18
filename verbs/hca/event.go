//go:build linux

package hca

import (
	"cmp"
	"context"
	"slices"
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

// pass gives the oldest event to a function, and removes it unless that refuses. No object is destroyed meanwhile, so
// none of its events is passed after it was. The next reader is woken if there are more.
func (e *events) pass(to func(provider.EventReport) bool) (some bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest, some := e.waiting.Oldest()
	if some && to(oldest) {
		e.waiting.Drop(oldest)
	}
	if e.waiting.Len() > 0 {
		e.wake()
	}
	return some
}

// objectEvents are those of an object, whose EventID they carry, in the order in which they are told.
var objectEvents = []verbs.EventType{
	verbs.EventCommEst, verbs.EventSQDrained, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventCQErr, verbs.EventQPFatal,
	verbs.EventQPLastWQEReached, verbs.EventSRQLimitReached, verbs.EventPathMigErr,
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

// GetAsyncEvent implements provider.Provider.
func (s *Session) GetAsyncEvent(ctx context.Context) (r provider.EventReport, err error) {
	err = s.PassAsyncEvent(ctx, func(oldest provider.EventReport) bool {
		r = oldest
		return true
	})
	return r, err
}

// PassAsyncEvent waits for an event and passes it on, or leaves it where it is if that is refused. No object is
// destroyed while it is passed, so to must not wait. After a failure the event of the device comes before the error: it
// is put before done is closed, so what is not there after that does not come.
func (s *Session) PassAsyncEvent(ctx context.Context, to func(provider.EventReport) bool) error {
	for {
		last := isClosed(s.life.done)
		s.ReportNoticed()
		if s.life.stopped() {
			return verbs.ErrClosed
		}
		if s.events.pass(to) {
			return nil
		}
		if last {
			return s.Err()
		}
		select {
		case <-s.events.ready:
		case <-s.life.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// eventSource is an object that has events. The engine notes them between packets, where it must not
// wait for a lock: it sets a bit, and puts the source into a list. Readers of events report what is in
// the list, so that idle objects cost nothing, however many there are.
type eventSource struct {
	id     uint64         // the program's EventID
	kind   ObjectKind     // for those who look
	number uint32         // likewise: a QP's; the handle of a CQ or an SRQ
	state  *atomic.Uint32 // a queue pair's
	gone   bool           // it is destroyed, and has no more events; under card.mu

	noted  atomic.Uint32 // bits of what has not been reported
	listed atomic.Bool
	next   *eventSource // in the list
}

// notedMove is the bit that says, for SessionConfig.Observe, that the engine has moved a queue pair.
// Events have the bits of their types.
const notedMove = 1 << 31

func notedEvent(event verbs.EventType) uint32 { return 1 << event }

// note is called by the engine, under its lease.
func (s *Session) note(from *eventSource, what uint32) {
	e := &s.events
	from.noted.Or(what)
	for put := from.listed.Swap(true); !put; {
		from.next = e.noted.Load()
		put = e.noted.CompareAndSwap(from.next, from)
	}
	e.wake()
	if e.tell != nil {
		e.tell()
	}
}

// takeNoted empties the list, and gives it in the order of the EventIDs: as the objects were made.
func (e *events) takeNoted() (list []*eventSource) {
	for from := e.noted.Swap(nil); from != nil; {
		next := from.next
		from.listed.Store(false) // from now on it may be in the list again
		list = append(list, from)
		from = next
	}
	slices.SortFunc(list, func(a, b *eventSource) int { return cmp.Compare(a.id, b.id) })
	return list
}

// ReportNoticed makes events of what the engine has noted.
func (s *Session) ReportNoticed() {
	if s.events.noted.Load() != nil {
		s.card.mu.Lock()
		defer s.card.mu.Unlock()
		s.putNoted()
	}
}

// putNoted is ReportNoticed for who holds card.mu.
func (s *Session) putNoted() {
	for _, from := range s.events.takeNoted() {
		if noted := from.noted.Swap(0); !from.gone {
			s.putSource(from, noted)
		}
	}
}

func (s *Session) putSource(from *eventSource, noted uint32) {
	if noted&notedMove != 0 {
		s.observe(ObjectEvent{Kind: from.kind, Number: from.number, Moved: true, State: verbs.QPState(from.state.Load())})
	}
	for _, event := range objectEvents {
		if noted&notedEvent(event) != 0 {
			s.events.put(provider.EventReport{Type: event, EventID: from.id})
			s.observe(ObjectEvent{Kind: from.kind, Number: from.number, Type: event})
		}
	}
}

func (s *Session) observe(e ObjectEvent) {
	if s.config.Observe != nil {
		s.config.Observe(e)
	}
}
