// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"runtime"
	"sync/atomic"
)

// Waiter is a program that sleeps until Events has an event, Closed or Done is closed, or Context is done.
type Waiter struct {
	Context context.Context
	Events  <-chan struct{} // of a CQ
	Closed  <-chan struct{} // with the CQ
	Done    <-chan struct{} // with the session
}

// over reports whether the wait is over. It consumes the event.
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

// leader is a program that waits alone, and meanwhile runs rounds itself: it sleeps on the sockets, runs a round when a
// frame has arrived, and finds its own completion. If the worker did that, each message would pass from one goroutine
// to another, and for each such wake-up the runtime wakes another thread.
//
// If several programs wait, the worker runs the rounds for all.
type leader struct {
	waiter Waiter
	spin   spin
	waits  uint32
	there  atomic.Bool // owns the fields above
	asleep atomic.Bool // or about to be; see WakeLeader
}

// waitsPerYield is the number of waits of a leader per yield. A program whose responses always arrive while the leader
// spins would otherwise keep other goroutines from its processor. A yield is not cheap: see verbs.CQ.Poll.
const waitsPerYield = 64

// Lead makes a waiting program the leader, and returns true when its wait is over. It returns false at once if another
// program waits too or the worker is not asleep: the program must then wait for its event. The caller has called
// BeginWait.
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

// runAsLeader runs rounds until the wait is over, or there is no more work; then it returns false, and the sleeper
// waits for a frame.
func (r *Runner) runAsLeader(uintptr) (over bool) {
	l := &r.leader
	l.asleep.Store(false)
	if r.runUntilOver() {
		return true
	}
	l.asleep.Store(true) // before the last check, so that no event is missed: pairs with WakeLeader
	return l.waiter.over()
}

// runUntilOver runs rounds as long as they find work, and spins if that pays off. If it leaves work behind, it calls
// the worker.
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
	if over && more { // usually an acknowledgement
		_, more = r.rounds.Round()
	}
	if more {
		r.Call()
	}
	return over
}

// WakeLeader makes the leader check whether its wait is over. Any goroutine may call it. It pairs with runAsLeader: the
// event was sent before.
func (r *Runner) WakeLeader() {
	if r.leader.asleep.Load() {
		r.sleeper.wakeLeader()
	}
}

// LeaderSleeps reports whether a leader sleeps, or is about to.
func (r *Runner) LeaderSleeps() bool { return r.leader.asleep.Load() }
