// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync/atomic"
	"time"
)

// alarm wakes the worker or the leader at a time when work is due that no frame and no call announces. It runs only if
// there is such work, and is set at most once for each time at which it expires.
type alarm struct {
	timer  timer
	closed bool
	at     time.Time   // when it expires, or has expired
	events atomic.Bool // it is set for events; read without the lease
	timers atomic.Bool // it is set for timers; read without the lease
}

// SetAlarm makes the next round begin no later than the first delayed event or the first timer is due; zero means none.
// An alarm that has expired is stopped if none is left: it would wake a sleeper forever. The caller holds the lease,
// and calls SetAlarm at the end of each round.
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

// note stores a value if it has changed: each store would take the cache line from other cores.
func note(to *atomic.Bool, is bool) {
	if to.Load() != is {
		to.Store(is)
	}
}

// set sets the time of expiry. If the alarm expires earlier anyway, the round that this causes sets it again.
func (a *alarm) set(at, now time.Time) {
	if a.closed || a.at.After(now) && !at.Before(a.at) {
		return
	}
	a.at = at
	a.timer.set(at.Sub(now))
}

// stop stops the alarm, even if it has expired.
func (a *alarm) stop() {
	a.at = time.Time{}
	if !a.closed {
		a.timer.stop()
	}
}

// close closes the alarm; set does nothing afterwards.
func (a *alarm) close() {
	a.closed = true
	a.timer.close()
}
