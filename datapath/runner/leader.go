package runner

import (
	"context"
	"runtime"
	"sync/atomic"
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

// leader is a program that waits, alone, and meanwhile has rounds run itself: it sleeps on the
// sockets, runs a round when a frame has come, and finds its own completion. If the worker did that,
// each message would pass from one goroutine to another, and for each such wake-up the runtime wakes
// a further thread.
//
// If several programs wait, the worker runs the rounds of all.
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
func (r *Runner) Lead(waiter Waiter) (over bool) {
	l := &r.leader
	if r.State() != Asleep {
		return false // it attends to the sockets when it falls asleep
	}
	if r.waiters.Load() != 1 || !l.there.CompareAndSwap(false, true) {
		r.sleeper.attend()
		return false
	}
	if l.waits++; l.waits%waitsPerYield == 0 {
		runtime.Gosched()
	}
	l.waiter = waiter
	r.sleeper.takeOver()
	r.lead()
	r.sleeper.handOver(&r.waiters, r.alarm.events.Load() || r.alarm.timers.Load())
	l.waiter = Waiter{}
	l.there.Store(false)
	return true
}

func (r *Runner) lead() {
	l := &r.leader
	if ctx := l.waiter.Context; ctx.Done() != nil {
		defer context.AfterFunc(ctx, r.WakeLeader)()
	}
	for again := true; again; {
		again = r.sleeper.lead(r.runAsLeader)
		l.asleep.Store(false)
	}
}

// runAsLeader runs rounds until the program need not wait any more, or there is nothing to do; then
// it returns false, and the sleeper waits for a frame.
func (r *Runner) runAsLeader(uintptr) (over bool) {
	l := &r.leader
	l.asleep.Store(false)
	if r.runUntilOver() {
		return true
	}
	l.asleep.Store(true) // before the last look, so that nothing is missed: pairs with WakeLeader
	return l.waiter.over()
}

// runUntilOver runs rounds as long as they find work, and spins if that pays. If it leaves work
// behind, it calls the worker.
func (r *Runner) runUntilOver() (over bool) {
	l, spinning, more := &r.leader, false, false
	for looks := true; looks; {
		var worked bool
		worked, more = r.rounds.Round()
		switch over = l.waiter.over(); {
		case over || more && !worked:
			looks = false
		case worked:
		case !spinning:
			spinning = r.worker.spin > 0 && !r.alarm.events.Load() && l.spin.begin()
			looks = spinning
		default:
			looks = l.spin.goesOn(r.worker.spin)
		}
	}
	if spinning {
		l.spin.end(over, r.worker.spin)
	}
	if over && more { // an acknowledgement, mostly
		_, more = r.rounds.Round()
	}
	if more {
		r.Call()
	}
	return over
}

// WakeLeader makes the leader look whether it need not wait any more. Any goroutine may call it. It pairs with runAsLeader:
// the event was sent before.
func (r *Runner) WakeLeader() {
	if r.leader.asleep.Load() {
		r.sleeper.wakeLeader()
	}
}

// LeaderSleeps reports whether a leader sleeps, or is about to.
func (r *Runner) LeaderSleeps() bool { return r.leader.asleep.Load() }
