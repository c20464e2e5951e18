//go:build linux

package hca

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// events are a session's that the program has not read: in the queues that it has opened, and one for the rest.
type events struct {
	mu     sync.Mutex
	rest   EventQueue
	opened atomic.Pointer[[]*EventQueue] // by their EventIDs; changed under mu

	noted atomic.Pointer[eventSource] // what the engine has noted of objects: a list
	tell  func()                      // SessionConfig.Noticed; nil for none
}

// EventQueue has events of a session's device and port, and of the objects whose EventIDs are in its range.
type EventQueue struct {
	session     *Session
	first, last uint64
	waiting     provider.Reports // under events.mu
	ready       chan struct{}    // of capacity 1
}

// maxEventQueues is how many a session may open.
const maxEventQueues = 1024

func (e *events) init(s *Session) {
	e.rest = EventQueue{session: s, ready: make(chan struct{}, 1)}
	e.opened.Store(&[]*EventQueue{})
	e.tell = s.config.Noticed
}

// OpenEvents gives a queue for the events of objects whose EventIDs are from first, which is not 0, to last. Other
// queues do not get them, but all get those of the device and its port. What is of objects with other EventIDs,
// GetAsyncEvent has. ErrBusy if another queue has one of them.
func (s *Session) OpenEvents(first, last uint64) (*EventQueue, error) {
	if first == 0 || first > last {
		return nil, fmt.Errorf("%w: events of objects from %#x to %#x", verbs.ErrInvalid, first, last)
	}
	e := &s.events
	e.mu.Lock()
	defer e.mu.Unlock()
	opened := *e.opened.Load()
	if len(opened) == maxEventQueues {
		return nil, fmt.Errorf("%w: %d queues of events", verbs.ErrLimit, maxEventQueues)
	}
	at, _ := slices.BinarySearchFunc(opened, first, (*EventQueue).compare)
	if at < len(opened) && opened[at].first <= last {
		return nil, fmt.Errorf("%w: events of objects from %#x to %#x go to a descriptor already", verbs.ErrBusy, opened[at].first, opened[at].last)
	}
	q := &EventQueue{session: s, first: first, last: last, ready: make(chan struct{}, 1)}
	opened = slices.Insert(slices.Clone(opened), at, q)
	e.opened.Store(&opened)
	return q, nil
}

// Close ends the queue, whose events are lost. Nobody waits in Pass any more.
func (q *EventQueue) Close() {
	e := &q.session.events
	e.mu.Lock()
	defer e.mu.Unlock()
	opened := slices.DeleteFunc(slices.Clone(*e.opened.Load()), func(one *EventQueue) bool { return one == q })
	e.opened.Store(&opened)
	e.rest.wake() // what is noted may be its from now on
}

// compare says whether the queue's range lies before an EventID, has it, or lies behind it.
func (q *EventQueue) compare(id uint64) int {
	switch {
	case q.last < id:
		return -1
	case q.first > id:
		return 1
	}
	return 0
}

// of is the queue for an object's events.
func (e *events) of(id uint64) *EventQueue {
	opened := *e.opened.Load()
	if at, found := slices.BinarySearchFunc(opened, id, (*EventQueue).compare); found {
		return opened[at]
	}
	return &e.rest
}

func (e *events) put(r provider.EventReport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(objectEvents, r.Type) {
		e.of(r.EventID).put(r)
		return
	}
	for _, q := range *e.opened.Load() {
		q.put(r)
	}
	e.rest.put(r)
}

func (q *EventQueue) put(r provider.EventReport) {
	q.waiting.Put(r)
	q.wake()
}

func (q *EventQueue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
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
		event := provider.EventReport{Type: kind, EventID: from.id}
		e.of(from.id).waiting.Drop(event)
		e.rest.waiting.Drop(event) // from before the other queue was opened
	}
}

// GetAsyncEvent implements provider.Provider.
func (s *Session) GetAsyncEvent(ctx context.Context) (r provider.EventReport, err error) {
	err = s.events.rest.Pass(ctx, func(oldest provider.EventReport) bool {
		r = oldest
		return true
	})
	return r, err
}

// Pass waits for an event and passes it on, or leaves it where it is if that is refused. No object is
// destroyed while it is passed, so to must not wait. After a failure the event of the device comes before the error: it
// is put before done is closed, so what is not there after that does not come.
func (q *EventQueue) Pass(ctx context.Context, to func(provider.EventReport) bool) error {
	life := &q.session.life
	for {
		last := isClosed(life.done)
		q.session.ReportNoticed()
		if life.stopped() {
			return verbs.ErrClosed
		}
		if q.pass(to) {
			return nil
		}
		if last {
			return q.session.Err()
		}
		select {
		case <-q.ready:
		case <-life.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass gives the oldest event to a function, and removes it unless that refuses. No object is destroyed meanwhile, so
// none of its events is passed after it was. The next reader is woken if there are more.
func (q *EventQueue) pass(to func(provider.EventReport) bool) (some bool) {
	e := &q.session.events
	e.mu.Lock()
	defer e.mu.Unlock()
	oldest, some := q.waiting.Oldest()
	if some && to(oldest) {
		q.waiting.Drop(oldest)
	}
	if q.waiting.Len() > 0 {
		q.wake()
	}
	return some
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

// note is called by the engine, under its lease. It pairs with takeNoted and putNoted: the bits are stored, then listed is
// loaded.
func (s *Session) note(from *eventSource, what uint32) {
	e := &s.events
	from.noted.Or(what)
	for put := from.listed.Swap(true); !put; {
		from.next = e.noted.Load()
		put = e.noted.CompareAndSwap(from.next, from)
	}
	e.of(from.id).wake()
	if e.tell != nil {
		e.tell()
	}
}

// takeNoted empties the list, and gives it in the order of the EventIDs: as the objects were made.
func (e *events) takeNoted() (list []*eventSource) {
	for from := e.noted.Swap(nil); from != nil; {
		next := from.next
		from.listed.Store(false) // from now on it may be in the list again; its bits are loaded after that (putNoted)
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
