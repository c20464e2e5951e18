package datapath

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"time"
)

// Waiter is a program that sleeps until Events has something, Closed or Done is closed, or Context is
// done.
type Waiter struct {
	Context context.Context
	Events  <-chan struct{} // of a CQ
	Closed  <-chan struct{} // with the CQ
	Done    <-chan struct{} // with the session
}

// over reports whether the program need not sleep any more. It takes the event.
func (w *Waiter) over() bool {
	select {
	case <-w.Events:
	case <-w.Closed:
	case <-w.Done:
	case <-w.Context.Done():
	default:
		return false
	}
	return true
}

// leader is a program that waits, alone, and meanwhile runs the engine itself: it sleeps on the
// sockets, runs a round when a frame has come, and finds its own completion. If the worker did that,
// each message would pass from one goroutine to another, and for each such wake-up the runtime wakes
// a further thread.
//
// If several programs wait, the worker runs the engine for all of them.
type leader struct {
	waiter Waiter
	spin   spin
	waits  uint32
	there  atomic.Bool // owns the fields above
	asleep atomic.Bool // or about to be; see WakeLeader
}

// waitsPerYield is how many waits a leader has for one yield. A program whose answers always come while
// the leader spins would else keep other goroutines from its processor. A yield is not cheap: see
// verbs.CQ.Poll.
const waitsPerYield = 64

// Lead makes a program that waits the leader, and returns true when it need not wait any more. It
// returns false, at once, if another program waits too or the worker is not asleep: then the program
// has to wait for its event. The caller has called BeginWait.
func (e *Engine) Lead(waiter Waiter) (over bool) {
	w, l := &e.worker, &e.leader
	if !w.is(workerAsleep) {
		return false // it attends to the sockets when it falls asleep
	}
	if w.waiters.Load() != 1 || !l.there.CompareAndSwap(false, true) {
		w.sleeper.attend()
		return false
	}
	if l.waits++; l.waits%waitsPerYield == 0 {
		runtime.Gosched()
	}
	l.waiter = waiter
	w.sleeper.takeOver()
	e.lead()
	w.sleeper.handOver(&w.waiters, e.some.Load() || e.timers.timed.Load())
	l.waiter = Waiter{}
	l.there.Store(false)
	return true
}

func (e *Engine) lead() {
	l, frames := &e.leader, &e.worker.sleeper.frames
	if ctx := l.waiter.Context; ctx.Done() != nil {
		defer context.AfterFunc(ctx, e.WakeLeader)()
	}
	for {
		err := frames.conn.Read(e.runAsLeader)
		if l.asleep.Store(false); !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		_ = frames.file.SetReadDeadline(time.Time{}) // WakeLeader has set it
	}
}

// runAsLeader runs rounds until the program need not wait any more, or there is nothing to do; then
// it returns false, and the runtime waits for a frame.
func (e *Engine) runAsLeader(uintptr) (over bool) {
	l := &e.leader
	l.asleep.Store(false)
	if e.runUntilOver() {
		return true
	}
	l.asleep.Store(true) // before the last look, so that nothing is missed
	return l.waiter.over()
}

// runUntilOver runs rounds as long as they find work, and spins if that pays. If it leaves work
// behind, it calls the worker.
func (e *Engine) runUntilOver() (over bool) {
	l, spinning, more := &e.leader, false, false
	for looks := true; looks; {
		var worked bool
		worked, more = e.workOnce()
		switch over = l.waiter.over(); {
		case over || more && !worked:
			looks = false
		case worked:
		case !spinning:
			spinning = e.worker.spin > 0 && !e.some.Load() && l.spin.begin()
			looks = spinning
		default:
			looks = l.spin.goesOn(e.worker.spin)
		}
	}
	if spinning {
		l.spin.end(over, e.worker.spin)
	}
	if over && more { // an acknowledgement, mostly
		_, more = e.workOnce()
	}
	if more {
		e.worker.call()
	}
	return over
}

// WakeLeader makes the leader look whether it need not wait any more. Any goroutine may call it.
func (e *Engine) WakeLeader() {
	if e.leader.asleep.Load() {
		_ = e.worker.sleeper.frames.file.SetReadDeadline(time.Unix(1, 0))
	}
}
