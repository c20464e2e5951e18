// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"time"

	"github.com/roced/roced/internal/timers"
)

// deadlines holds the time of the next action of each connection: a retransmission after a timeout or an RNR NAK, or
// the next packet of a rate-limited connection (congestion.go).
//
// Each response moves the connection's deadline to a later time. This only changes deadline.due: the heap is ordered by
// the time of the next check, and a connection whose deadline has moved by then is inserted again. A response is
// therefore cheap, and a timeout costs one heap operation. A timer wheel would have to be advanced through empty slots.
//
// A connection that has sent packets counts as in flight (flight.Flow.Fly) until its next check, some time after its
// last response. The count is therefore the number of connections that are sending, including those that have no
// packets in flight at this moment.
type deadlines struct {
	engine *Engine
	heap   timers.Heap[*Connection]
}

// deadline is a connection's deadline.
type deadline struct {
	due   time.Time                 // zero: none
	asked timers.Timer[*Connection] // time of the next check; never later than due
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

// clear clears the deadline. The connection stays in the heap until its next check.
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

// expire handles the deadlines that have passed, at most sendBudget of them, and reports whether there were any.
func (d *deadlines) expire() (some bool) {
	e := d.engine
	if !e.flights.Deadline().IsZero() {
		e.round.hand = nil // this work belongs to no session
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
