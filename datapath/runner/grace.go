// SPDX-License-Identifier: Apache-2.0

package runner

import "time"

// graceTime is the length of the grace period, during which frames do not wake the worker, because a program that has
// stopped waiting will probably soon wait again. Frames that arrive in this period wait for the program, for at most
// twice this time.
const graceTime = time.Millisecond

// grace is the state of the grace period. Setting a timer of the kernel takes about as long as sending a message (10 µs
// if the hypervisor implements the timer). The timer is therefore set at most once in graceTime instead of for each
// wait, and not at all if programs wait less often.
type grace struct {
	timer   timer
	running bool      // the timer is running
	again   bool      // start was called while the timer was running
	noted   time.Time // time at which the last leader stopped waiting
}

// start starts the timer. If it is already running, end will return true.
func (g *grace) start() {
	if g.running {
		g.again = true
		return
	}
	g.running = true
	g.timer.set(graceTime)
}

// end is called when the timer has expired. It reports whether the grace period must be started again.
func (g *grace) end() (again bool) {
	again = g.again
	g.running, g.again = false, false
	return again
}

// note records that a leader stops waiting, and reports whether the previous one did less than graceTime ago.
func (g *grace) note() (often bool) {
	now := time.Now()
	often = now.Sub(g.noted) < graceTime
	g.noted = now
	return often
}
