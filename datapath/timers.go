package datapath

import (
	"time"

	"github.com/roced/roced/internal/timers"
)

// deadlines are the times at which connections have something to do: to send again what was not answered, or what
// the peer was not ready for; or to send on, at a rate (congestion.go). There is one for each connection. It is moved on
// with every answer, which is only noted: a heap orders the connections by when they are asked, and one whose time has
// moved on meanwhile goes back into it. So an answer costs nothing, and a time-out a step in the heap, where a wheel would
// have to be turned through empty slots.
//
// A connection that has packets in flight, or is about to have some, counts as in flight (flight.Flow.Fly) until it is
// asked, some time after its last answer: so these are as many as send, not as happen to wait just now.
type deadlines struct {
	engine *Engine
	heap   timers.Heap[*Connection]
}

// deadline is a connection's part.
type deadline struct {
	due   time.Time                 // zero: none
	asked timers.Timer[*Connection] // when it is looked at; not after due
}

func (d *deadlines) empty() bool { return len(d.heap) == 0 }

// follow makes the connection's time come when it has something to do, if it has.
func (d *deadlines) follow(c *Connection) {
	if due := c.due(); !due.IsZero() {
		d.set(c, due)
	} else {
		d.clear(c)
	}
}

// set makes the connection's time come at due, and not before.
func (d *deadlines) set(c *Connection, due time.Time) {
	m := &c.deadline
	m.due = due
	c.flight.Fly(c.Requester.InFlight())
	if !m.asked.Runs() || due.Before(m.asked.At()) {
		m.asked.Of = c
		d.heap.Set(&m.asked, due)
	}
}

// clear makes it not come. The connection leaves the heap when it is asked next.
func (d *deadlines) clear(c *Connection) { c.deadline.due = time.Time{} }

// stop takes the connection out.
func (d *deadlines) stop(c *Connection) {
	d.heap.Stop(&c.deadline.asked)
	c.flight.Fly(false)
	d.clear(c)
}

// next takes out a connection whose time has come; nil if there is none.
func (d *deadlines) next(now time.Time) *Connection {
	for first := d.heap.First(); first != nil && !first.At().After(now); first = d.heap.First() {
		c := first.Of
		due := c.deadline.due
		if due.After(now) {
			d.heap.Set(first, due)
			continue
		}
		d.stop(c)
		if !due.IsZero() {
			return c
		}
	}
	return nil
}

// earliest is when to ask next; zero if there is none.
func earliest[T any](heap timers.Heap[T]) time.Time {
	if first := heap.First(); first != nil {
		return first.At()
	}
	return time.Time{}
}

// earlier is the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// expire acts on the times that have come.
func (d *deadlines) expire() (some bool) {
	e := d.engine
	if !e.flights.Deadline().IsZero() {
		e.round.hand = nil // it is no session's work
		some = e.flights.Expire(e.round.now())
	}
	if d.empty() {
		return some
	}
	for e.round.budget = sendBudget; e.round.budget > 0; e.round.budget-- {
		c := d.next(e.round.now())
		if c == nil {
			break
		}
		e.round.hand = c.qp.Session
		c.expire()
		some = true
	}
	return some
}
