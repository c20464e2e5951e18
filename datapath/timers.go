// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"time"

	"github.com/roced/roced/internal/timers"
)

// deadlines holds the time of the next action of each connection: a retransmission after a timeout or an RNR NAK, or
// the next packet of a rate-limited connection (congestion.go). Each response moves a connection's deadline, which is
// only recorded: the heap is ordered by the time of the next check, and a connection whose deadline has moved by then
// is inserted again. So a response costs almost nothing and a timeout one heap operation; a timer wheel would have to
// be advanced through empty slots.
//
// A connection with packets in flight, or about to have some, counts as in flight (flight.Flow.Fly) until the next
// check, some time after its last response. The count is therefore that of the sending connections, not of those that
// wait at the moment.
type deadlines struct {
	engine *Engine
	heap   timers.Heap[*Connection]
}

// deadline is a connection's deadline.
type deadline struct {
	due   time.Time                 // zero: none
	asked timers.Timer[*Connection] // time of the next check; not after due
}

func (d *deadlines) empty() bool { return len(d.heap) == 0 }

// follow sets the connection's deadline to its next action, or clears it.
func (d *deadlines) follow(c *Connection) {
	if due := c.due(); !due.IsZero() {
		d.set(c, due)
	} else {
		d.clear(c)
	}
}

// set sets the connection's deadline.
func (d *deadlines) set(c *Connection, due time.Time) {
	m := &c.deadline
	m.due = due
	c.flight.Fly(c.Requester.InFlight())
	if !m.asked.Runs() || due.Before(m.asked.At()) {
		m.asked.Of = c
		d.heap.Set(&m.asked, due)
	}
}

// clear removes the deadline. The connection stays in the heap until its next check.
func (d *deadlines) clear(c *Connection) { c.deadline.due = time.Time{} }

// stop removes the connection from the heap.
func (d *deadlines) stop(c *Connection) {
	d.heap.Stop(&c.deadline.asked)
	c.flight.Fly(false)
	d.clear(c)
}

// next removes and returns a connection whose deadline has passed; nil if none has.
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

// earliest returns the time of the next check; zero for an empty heap.
func earliest[T any](heap timers.Heap[T]) time.Time {
	if first := heap.First(); first != nil {
		return first.At()
	}
	return time.Time{}
}

// earlier returns the earlier of two times; zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// expire handles the deadlines that have passed.
func (d *deadlines) expire() (some bool) {
	e := d.engine
	if !e.flights.Deadline().IsZero() {
		e.round.hand = nil // the work of no session
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
