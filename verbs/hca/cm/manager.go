// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/timers"
)

// Manager is the connection manager of one port. See the package's documentation for its use.
type Manager struct {
	random      func() uint64
	inquiries   map[uint32]*Inquiry // by request id
	connections connections
	timers      timers.Heap[func(now time.Time)] // each calls its handler
	listeners   map[listenerKey][]*Listener
	requests    map[requestKey]*Request
	kept        queue[*Request] // of requests with a reply, in the order of expiry
	refusals    bucket
	out         queue[Datagram]
	events      queue[Event]
	counters    Counters
	hand        any // see InHand
}

// New creates a manager. The numbers from random become the ids in its requests; they must be unpredictable for other
// hosts.
func New(random func() uint64) *Manager {
	return &Manager{
		random: random, inquiries: map[uint32]*Inquiry{}, connections: newConnections(),
		listeners: map[listenerKey][]*Listener{}, requests: map[requestKey]*Request{},
	}
}

// InHand returns the owner of the object that the last Receive or Expire was handling when it ended, or nil. It lets
// the caller attribute a contained panic.
func (m *Manager) InHand() any { return m.hand }

// NextDatagram dequeues the next message to send, if any.
func (m *Manager) NextDatagram() (Datagram, bool) { return m.out.pop() }

// NextEvent dequeues the next event for an owner, if any.
func (m *Manager) NextEvent() (Event, bool) { return m.events.pop() }

// Waiting reports whether NextDatagram has a message.
func (m *Manager) Waiting() bool { return m.out.len() > 0 }

// Deadline returns the time when Expire must be called; false if no timer runs.
func (m *Manager) Deadline() (at time.Time, ok bool) {
	if first := m.timers.First(); first != nil {
		at, ok = first.At(), true
	}
	if oldest, some := m.kept.first(); some && (!ok || oldest.forget.Before(at)) {
		return oldest.forget, true
	}
	return at, ok
}

// Expire handles expired timers: it repeats or ends unanswered requests, and forgets old ones.
func (m *Manager) Expire(now time.Time) {
	for t := m.timers.Due(now); t != nil; t = m.timers.Due(now) {
		t.Of(now)
	}
	m.hand = nil
	for oldest, some := m.kept.first(); some && !oldest.forget.After(now); oldest, some = m.kept.first() {
		m.forgetOldest()
	}
}

// maxOut limits the messages that wait to be sent. Further ones are lost, as on a network, and are repeated if needed.
const maxOut = 4096

// send queues a message that write writes.
func (m *Manager) send(path Path, write func(wire.MAD)) {
	if m.out.len() == maxOut {
		m.counters[SendOverflow]++
		return
	}
	d := Datagram{Path: path}
	write(d.mad())
	m.out.push(d)
	m.counters[Sent]++
}

func (m *Manager) tell(e Event) { m.events.push(e) }

// queue is a first-in, first-out queue.
type queue[T any] struct{ items []T }

func (q *queue[T]) len() int    { return len(q.items) }
func (q *queue[T]) push(item T) { q.items = append(q.items, item) }

func (q *queue[T]) first() (item T, some bool) {
	if len(q.items) == 0 {
		return item, false
	}
	return q.items[0], true
}

func (q *queue[T]) pop() (item T, some bool) {
	if item, some = q.first(); !some {
		return item, false
	}
	var none T
	q.items[0] = none // the queue keeps no dequeued item alive
	if q.items = q.items[1:]; len(q.items) == 0 {
		q.items = nil
	}
	return item, true
}
