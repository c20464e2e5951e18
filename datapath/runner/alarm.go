// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync/atomic"
	"time"
)

// alarm wakes the worker or the leader when work is due that no frame and no call announces. It runs only while there
// is such work, and is set at most once between two expiries, unless it must expire earlier.
type alarm struct {
	timer  timer
	closed bool
	at     time.Time   // time at which it expires or has expired; zero: it is stopped
	events atomic.Bool // it is set for delayed events; read without the lease
	timers atomic.Bool // it is set for timers; read without the lease
}

// SetAlarm makes the next round begin when the first delayed event or the first timer is due, at the latest; a zero
// time means that there is none. If there is neither, SetAlarm stops an alarm that has expired, which would wake a
// sleeper again and again. The caller holds the lease, and calls SetAlarm at the end of each round.
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

// note stores a value only if it has changed, because each store takes the cache line away from other cores.
func note(to *atomic.Bool, is bool) {
	if to.Load() != is {
		to.Store(is)
	}
}

// set sets the time of expiry. It does nothing if the alarm already expires earlier: the round after that sets it
// again.
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
