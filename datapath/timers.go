package datapath

import (
	"sync/atomic"
	"time"
)

// timers are the times at which connected queue pairs have something to do: to send again what was not
// answered, or what the peer was not ready for. There is one for each queue pair. It is moved on with
// every answer, which is only noted: a heap orders the queue pairs by when they were last asked, and one
// whose time has moved on meanwhile goes back into it. So an answer costs nothing, and a time-out a step
// in the heap, where a wheel would have to be turned through empty slots.
type timers struct {
	heap  []*QP       // by timer.asked; the earliest is the first
	timed atomic.Bool // it is not empty; for who has not the lease
}

// timer is a queue pair's part.
type timer struct {
	due   time.Time // zero: none
	asked time.Time // when it is looked at; not after due
	place int       // in the heap, from 1; 0: not in it
}

func (t *timers) empty() bool { return len(t.heap) == 0 }

// set makes the queue pair's time come at due, and not before.
func (t *timers) set(qp *QP, due time.Time) {
	m := &qp.timer
	m.due = due
	switch {
	case m.place == 0:
		m.asked = due
		t.heap = append(t.heap, qp)
		m.place = len(t.heap)
		t.up(m.place)
	case due.Before(m.asked):
		m.asked = due
		t.up(m.place)
	}
}

// clear makes it not come. The queue pair leaves the heap when it is asked next.
func (t *timers) clear(qp *QP) { qp.timer.due = time.Time{} }

// stop takes the queue pair out.
func (t *timers) stop(qp *QP) {
	place := qp.timer.place
	qp.timer = timer{}
	if place == 0 {
		return
	}
	last := t.heap[len(t.heap)-1]
	t.heap[len(t.heap)-1] = nil
	t.heap = t.heap[:len(t.heap)-1]
	if last != qp {
		t.put(last, place)
		t.up(place)
		t.down(last.timer.place)
	}
}

// next takes out a queue pair whose time has come; nil if there is none.
func (t *timers) next(now time.Time) *QP {
	for len(t.heap) > 0 {
		qp := t.heap[0]
		m := &qp.timer
		if m.asked.After(now) {
			return nil
		}
		if m.due.After(now) {
			m.asked = m.due
			t.down(1)
			continue
		}
		none := m.due.IsZero()
		t.stop(qp)
		if !none {
			return qp
		}
	}
	return nil
}

// earliest is when to ask next. There is one.
func (t *timers) earliest() time.Time { return t.heap[0].timer.asked }

func (t *timers) put(qp *QP, place int) {
	t.heap[place-1] = qp
	qp.timer.place = place
}

func (t *timers) before(place, other int) bool {
	return t.heap[place-1].timer.asked.Before(t.heap[other-1].timer.asked)
}

func (t *timers) swap(place, other int) {
	a, b := t.heap[place-1], t.heap[other-1]
	t.put(a, other)
	t.put(b, place)
}

func (t *timers) up(place int) {
	for ; place > 1 && t.before(place, place/2); place /= 2 {
		t.swap(place, place/2)
	}
}

func (t *timers) down(place int) {
	for {
		child := 2 * place
		if child > len(t.heap) {
			return
		}
		if child < len(t.heap) && t.before(child+1, child) {
			child++
		}
		if !t.before(child, place) {
			return
		}
		t.swap(place, child)
		place = child
	}
}

// expire acts on the times that have come.
func (e *Engine) expire() (some bool) {
	if e.timers.empty() {
		return false
	}
	for e.budget = sendBudget; e.budget > 0; e.budget-- {
		qp := e.timers.next(e.now())
		if qp == nil {
			break
		}
		e.timeOut(qp)
		some = true
	}
	return some
}
