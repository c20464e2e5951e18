// SPDX-License-Identifier: Apache-2.0

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

// events holds the events of a session that the program has not read: in the queues that it has opened, and in a
// default queue.
type events struct {
	card    *sync.Mutex       // the card's lock
	life    *life             // the session's
	err     func() error      // the session's
	observe func(ObjectEvent) // SessionConfig.Observe; nil for none
	noticed func()            // SessionConfig.Noticed; nil for none

	mu     sync.Mutex
	rest   EventQueue
	opened atomic.Pointer[[]*EventQueue] // by their EventIDs; changed under mu

	noted atomic.Pointer[eventSource] // a list of the objects with events noted by the engine
}

// EventQueue holds the events of a session's device and port, and of the objects whose EventIDs are in its range.
type EventQueue struct {
	events      *events
	first, last uint64
	waiting     provider.Reports // under events.mu
	ready       chan struct{}    // of capacity 1
}

// maxEventQueues is the maximum number of queues that a session can open.
const maxEventQueues = 1024

// init creates the default queue, for a session with a life and an error.
func (e *events) init(of *life, err func() error) {
	e.life, e.err = of, err
	e.rest = EventQueue{events: e, ready: make(chan struct{}, 1)}
	e.opened.Store(&[]*EventQueue{})
}

// open returns a new queue for the events of objects with EventIDs from first to last.
func (e *events) open(first, last uint64) (*EventQueue, error) {
	if first == 0 || first > last {
		return nil, fmt.Errorf("%w: invalid range of EventIDs, %#x to %#x", verbs.ErrInvalid, first, last)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	opened := *e.opened.Load()
	if len(opened) == maxEventQueues {
		return nil, fmt.Errorf("%w: the session has %d event queues, the maximum; close some", verbs.ErrLimit, maxEventQueues)
	}
	at, _ := slices.BinarySearchFunc(opened, first, (*EventQueue).compare)
	if at < len(opened) && opened[at].first <= last {
		return nil, fmt.Errorf("%w: another descriptor receives the events of EventIDs %#x to %#x", verbs.ErrBusy, opened[at].first, opened[at].last)
	}
	q := &EventQueue{events: e, first: first, last: last, ready: make(chan struct{}, 1)}
	opened = slices.Insert(slices.Clone(opened), at, q)
	e.opened.Store(&opened)
	return q, nil
}

// Close removes the queue; its events are lost. No goroutine may be in Pass.
func (q *EventQueue) Close() {
	e := q.events
	e.mu.Lock()
	defer e.mu.Unlock()
	opened := slices.DeleteFunc(slices.Clone(*e.opened.Load()), func(one *EventQueue) bool { return one == q })
	e.opened.Store(&opened)
	e.rest.wake() // noted events of its range belong to the default queue from now on
}

// compare returns -1 if the queue's range is below an EventID, 0 if it contains the EventID, and 1 if it is above.
func (q *EventQueue) compare(id uint64) int {
	switch {
	case q.last < id:
		return -1
	case q.first > id:
		return 1
	}
	return 0
}

// queueOf returns the queue for an object's events.
func (e *events) queueOf(id uint64) *EventQueue {
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
		e.queueOf(r.EventID).put(r)
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

// objectEvents lists the events of objects, which carry the object's EventID, in the order of reporting.
var objectEvents = []verbs.EventType{
	verbs.EventCommEst, verbs.EventSQDrained, verbs.EventQPReqErr, verbs.EventQPAccessErr, verbs.EventCQErr, verbs.EventQPFatal,
	verbs.EventQPLastWQEReached, verbs.EventSRQLimitReached, verbs.EventPathMigErr,
}

// forget drops the events of an object that is being destroyed. The caller holds the card's lock.
func (e *events) forget(from *eventSource) {
	from.gone = true
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kind := range objectEvents {
		event := provider.EventReport{Type: kind, EventID: from.id}
		e.queueOf(from.id).waiting.Drop(event)
		e.rest.waiting.Drop(event) // from before the other queue was opened
	}
}

// Pass waits for an event and passes it to a function; it keeps the event if the function returns false. No object is
// destroyed during the call, so the function must not block. After a failure, EventDeviceFatal comes before the error:
// it is queued before done is closed.
func (q *EventQueue) Pass(ctx context.Context, to func(provider.EventReport) bool) error {
	life := q.events.life
	for {
		last := isClosed(life.done)
		q.events.reportNoted()
		if life.stopped() {
			return verbs.ErrClosed
		}
		if q.pass(to) {
			return nil
		}
		if last {
			return q.events.err()
		}
		select {
		case <-q.ready:
		case <-life.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pass passes the oldest event to a function, and removes it if that returns true. It holds e.mu, so no event of an
// object is passed after the object is destroyed. If more events are queued, it wakes the next reader.
func (q *EventQueue) pass(to func(provider.EventReport) bool) (some bool) {
	e := q.events
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

// eventSource is an object that has events. The engine notes them between packets, where it must not wait for a lock:
// it sets a bit and puts the source into a list. Readers report the events of the sources in the list, so idle objects
// cost nothing.
type eventSource struct {
	id     uint64         // the program's EventID
	kind   ObjectKind     // for SessionConfig.Observe
	number uint32         // also for Observe: the QP number, or the handle of a CQ or an SRQ
	state  *atomic.Uint32 // a queue pair's
	gone   bool           // it is destroyed and has no more events; under card.mu

	noted  atomic.Uint32 // bits of the events to report
	listed atomic.Bool
	next   *eventSource // in the list
}

// notedMove is the bit, for SessionConfig.Observe, of a state change that the engine has made to a queue pair. Events
// have the bits of their types.
const notedMove = 1 << 31

func notedEvent(event verbs.EventType) uint32 { return 1 << event }

// note is called by the engine, under its lease. It pairs with takeNoted and putNoted: the bits are stored, then listed
// is loaded.
func (e *events) note(from *eventSource, what uint32) {
	from.noted.Or(what)
	for put := from.listed.Swap(true); !put; {
		from.next = e.noted.Load()
		put = e.noted.CompareAndSwap(from.next, from)
	}
	e.queueOf(from.id).wake()
	if e.noticed != nil {
		e.noticed()
	}
}

// takeNoted empties the list, and returns it in the order of the EventIDs, which is the order of creation.
func (e *events) takeNoted() (list []*eventSource) {
	for from := e.noted.Swap(nil); from != nil; {
		next := from.next
		from.listed.Store(false) // from now on note may put it into the list again; its bits are loaded after that (putNoted)
		list = append(list, from)
		from = next
	}
	slices.SortFunc(list, func(a, b *eventSource) int { return cmp.Compare(a.id, b.id) })
	return list
}

// reportNoted reports the events that the engine has noted.
func (e *events) reportNoted() {
	if e.noted.Load() != nil {
		e.card.Lock()
		defer e.card.Unlock()
		e.putNoted()
	}
}

// putNoted is reportNoted for a caller that holds the card's lock.
func (e *events) putNoted() {
	for _, from := range e.takeNoted() {
		if noted := from.noted.Swap(0); !from.gone {
			e.putSource(from, noted)
		}
	}
}

func (e *events) putSource(from *eventSource, noted uint32) {
	if noted&notedMove != 0 && e.observe != nil {
		e.observe(ObjectEvent{Kind: from.kind, Number: from.number, Moved: true, State: verbs.QPState(from.state.Load())})
	}
	for _, event := range objectEvents {
		if noted&notedEvent(event) == 0 {
			continue
		}
		e.put(provider.EventReport{Type: event, EventID: from.id})
		if e.observe != nil {
			e.observe(ObjectEvent{Kind: from.kind, Number: from.number, Type: event})
		}
	}
}
