package runner

import (
	"sync/atomic"
	"time"
)

// alarm wakes the worker or the leader when there is something to do that no frame
// and no call announces. It runs only while there is, and is set at most once for each time at which it rings.
type alarm struct {
	timer  timer
	closed bool
	at     time.Time   // when it rings, or has rung
	events atomic.Bool // it rings for events; for who has not the lease
	timers atomic.Bool // likewise
}

// SetAlarm has the next round begin at the latest when the first event that was put off is due, or the first timer
// ends; zero where there is none. One that has rung is stopped when there is none: who sleeps on it would be woken for
// ever. The caller holds the lease, and calls it at the end of each round.
func (r *Runner) SetAlarm(events, timers time.Time, now func() time.Time) {
	a := &r.alarm
	note(&a.events, !events.IsZero())
	note(&a.timers, !timers.IsZero())
	at := timers
	if at.IsZero() || !events.IsZero() && events.Before(at) {
		at = events
	}
	switch {
	case !at.IsZero():
		a.set(at, now())
	case !a.at.IsZero():
		a.stop()
	}
}

// note stores what has changed: a store takes the cache line from other cores each time.
func note(to *atomic.Bool, is bool) {
	if to.Load() != is {
		to.Store(is)
	}
}

// set makes it ring at that time. If it rings before that anyway, the round that this causes sets it
// again.
func (a *alarm) set(at, now time.Time) {
	if a.closed || a.at.After(now) && !at.Before(a.at) {
		return
	}
	a.at = at
	a.timer.set(at.Sub(now))
}

// stop ends it, also if it has rung.
func (a *alarm) stop() {
	a.at = time.Time{}
	if !a.closed {
		a.timer.stop()
	}
}

// close closes it; from then on set does nothing.
func (a *alarm) close() {
	a.closed = true
	a.timer.close()
}
