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
	Events  <-chan struct{} // the events of a CQ
	Closed  <-chan struct{} // closed with the CQ
	Done    <-chan struct{} // closed with the session
}

// over reports whether the wait is over. It consumes an event.
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

// leader is a program that waits alone and runs rounds itself: it sleeps on the sockets, runs a round when a frame has
// arrived, and finds its own completion. If the worker ran the round, it would have to wake the program for each
// message, and for each such wake-up the Go runtime wakes another thread.
//
// If several programs wait, the worker runs the rounds for all of them.
type leader struct {
	waiter Waiter
	spin   spin
	waits  uint32      // number of waits
	there  atomic.Bool // there is a leader, which owns the fields above
	asleep atomic.Bool // the leader is asleep, or about to sleep; see WakeLeader
}

// waitsPerYield is the number of waits of a leader between two yields. A program whose responses always arrive while
// the leader spins would otherwise never yield the processor to other goroutines. A yield is expensive; see
// verbs.CQ.Poll.
const waitsPerYield = 64

// Lead makes a waiting program the leader, and returns true when its wait is over. It returns false at once if another
// program waits too or the worker is not asleep: the program must then wait for its event. The caller must have called
// BeginWait.
func (r *Runner) Lead(waiter Waiter) (over bool) {
	l := &r.leader
	if r.State() != Asleep {
		return false // the worker watches the sockets when it falls asleep
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

// runAsLeader runs rounds until the wait is over or there is no more work. It reports whether the wait is over;
// otherwise the sleeper waits for a frame.
func (r *Runner) runAsLeader(uintptr) (over bool) {
	l := &r.leader
	l.asleep.Store(false)
	if r.runUntilOver() {
		return true
	}
	l.asleep.Store(true) // before the last check of the events: pairs with WakeLeader
	return l.waiter.over()
}

// runUntilOver runs rounds as long as they find work, and then spins if spinning has been worthwhile. If it leaves
// work, it calls the worker.
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
	if over && more { // the remaining work is usually an acknowledgement
		_, more = r.rounds.Round()
	}
	if more {
		r.Call()
	}
	return over
}

// WakeLeader makes the leader check whether its wait is over. The caller has sent the event before, which pairs with
// runAsLeader. Any goroutine may call it.
func (r *Runner) WakeLeader() {
	if r.leader.asleep.Load() {
		r.sleeper.wakeLeader()
	}
}

// LeaderSleeps reports whether a leader sleeps, or is about to sleep.
func (r *Runner) LeaderSleeps() bool { return r.leader.asleep.Load() }
