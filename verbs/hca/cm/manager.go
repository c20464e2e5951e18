package cm

import (
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/timers"
)

// Manager is the connection manager of one port. See the package's documentation for how it is used.
type Manager struct {
	random      func() uint64
	inquiries   map[uint32]*Inquiry // by request id
	connections connections
	timers      timers.Heap[func(now time.Time)] // each calls what is to be done then
	listeners   map[listenerKey][]*Listener
	requests    map[requestKey]*Request
	kept        queue[*Request] // of requests: those that have a reply, in the order in which they are forgotten
	refusals    bucket
	out         queue[Datagram]
	events      queue[Event]
	counters    Counters
	hand        any // see InHand
}

// New makes a manager. The numbers from random become the ids in its requests: who cannot see them
// should not be able to guess them.
func New(random func() uint64) *Manager {
	return &Manager{
		random: random, inquiries: map[uint32]*Inquiry{}, connections: newConnections(),
		listeners: map[listenerKey][]*Listener{}, requests: map[requestKey]*Request{},
	}
}

// InHand is the owner of what the last Receive or Expire had in hand when it ended: for who contains a panic of
// theirs, and wants to know whose it was. nil for nobody.
func (m *Manager) InHand() any { return m.hand }

// NextDatagram gives the next message to send; false if there is none.
func (m *Manager) NextDatagram() (Datagram, bool) { return m.out.pop() }

// NextEvent gives the next event for an owner; false if there is none.
func (m *Manager) NextEvent() (Event, bool) { return m.events.pop() }

// Waiting says whether NextDatagram has a message.
func (m *Manager) Waiting() bool { return m.out.len() > 0 }

// Deadline is when Expire has to be called; false if nothing expires.
func (m *Manager) Deadline() (at time.Time, ok bool) {
	if first := m.timers.First(); first != nil {
		at, ok = first.At(), true
	}
	if oldest, some := m.kept.first(); some && (!ok || oldest.forget.Before(at)) {
		return oldest.forget, true
	}
	return at, ok
}

// Expire does what is due: it repeats what was not answered in time, or ends it, and forgets old
// requests.
func (m *Manager) Expire(now time.Time) {
	for t := m.timers.Due(now); t != nil; t = m.timers.Due(now) {
		t.Of(now)
	}
	m.hand = nil
	for oldest, some := m.kept.first(); some && !oldest.forget.After(now); oldest, some = m.kept.first() {
		m.forgetOldest()
	}
}

// maxOut bounds the messages that wait to be sent. One that finds no room is lost, as on a network:
// who needs it asks again.
const maxOut = 4096

// send has a message sent: write writes it.
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
	q.items[0] = none // the queue holds nothing that was taken
	if q.items = q.items[1:]; len(q.items) == 0 {
		q.items = nil
	}
	return item, true
}
