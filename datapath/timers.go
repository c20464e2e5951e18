package datapath

import (
	"container/heap"
	"time"
)

// timers are the times at which connected queue pairs have something to do: to send again what was not
// answered, or what the peer was not ready for. There is one for each queue pair. It is moved on with
// every answer, which is only noted: a heap orders the queue pairs by when they are asked, and one whose
// time has moved on meanwhile goes back into it. So an answer costs nothing, and a time-out a step in the
// heap, where a wheel would have to be turned through empty slots.
//
// Of those in it, flights are the ones that have packets on their way. A queue pair leaves them only when it
// is asked, some time after its last answer: so they are as many as send, not as happen to wait just now.
type timers struct {
	heap    timerHeap
	flights int // sessions with queue pairs in flight
}

// timer is a connection's part.
type timer struct {
	due   time.Time // zero: none
	asked time.Time // when it is looked at; not after due
	place int       // in the heap, from 1; 0: not in it
	flies bool      // it counts as in flight
}

func (t *timers) empty() bool { return len(t.heap) == 0 }

// follow makes the connection's time come at its requester's deadline, if that has one.
func (t *timers) follow(c *Connection) {
	if due := c.Requester.Deadline(); !due.IsZero() {
		t.set(c, due)
	} else {
		t.clear(c)
	}
}

// set makes the connection's time come at due, and not before.
func (t *timers) set(c *Connection, due time.Time) {
	m := &c.timer
	m.due = due
	t.count(c, c.Requester.InFlight())
	switch {
	case m.place == 0:
		m.asked = due
		heap.Push(&t.heap, c)
	case due.Before(m.asked):
		m.asked = due
		heap.Fix(&t.heap, m.place-1)
	}
}

// clear makes it not come. The connection leaves the heap when it is asked next.
func (t *timers) clear(c *Connection) { c.timer.due = time.Time{} }

// count notes whether a connection is in flight.
func (t *timers) count(c *Connection, flies bool) {
	m, s := &c.timer, c.qp.Session
	if m.flies == flies {
		return
	}
	if m.flies = flies; flies {
		if s.flights++; s.flights == 1 {
			t.flights++
		}
	} else if s.flights--; s.flights == 0 {
		t.flights--
	}
}

// stop takes the connection out.
func (t *timers) stop(c *Connection) {
	if place := c.timer.place; place != 0 {
		heap.Remove(&t.heap, place-1)
	}
	t.count(c, false)
	c.timer = timer{}
}

// next takes out a connection whose time has come; nil if there is none.
func (t *timers) next(now time.Time) *Connection {
	for len(t.heap) > 0 {
		c := t.heap[0]
		m := &c.timer
		if m.asked.After(now) {
			return nil
		}
		if m.due.After(now) {
			m.asked = m.due
			heap.Fix(&t.heap, 0)
			continue
		}
		none := m.due.IsZero()
		t.stop(c)
		if !none {
			return c
		}
	}
	return nil
}

// earliest is when to ask next; zero if there is none.
func (t *timers) earliest() time.Time {
	if t.empty() {
		return time.Time{}
	}
	return t.heap[0].timer.asked
}

// timerHeap is a heap.Interface: connections by timer.asked.
type timerHeap []*Connection

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].timer.asked.Before(h[j].timer.asked) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer.place, h[j].timer.place = i+1, j+1
}

func (h *timerHeap) Push(one any) {
	*h = append(*h, one.(*Connection))
	(*h)[len(*h)-1].timer.place = len(*h)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return one
}

// expire acts on the times that have come.
func (e *Engine) expire() (some bool) {
	if e.timers.empty() {
		return false
	}
	for e.budget = sendBudget; e.budget > 0; e.budget-- {
		c := e.timers.next(e.now())
		if c == nil {
			break
		}
		e.hand = c.qp.Session
		c.expire()
		some = true
	}
	return some
}
