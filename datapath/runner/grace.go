// SPDX-License-Identifier: Apache-2.0

package runner

import "time"

// graceTime is the time for which the worker leaves the frames to a program that has stopped waiting and will soon wait
// again. Frames that arrive meanwhile wait for the program, at most for twice this time.
const graceTime = time.Millisecond

// grace is that time. Setting a timer of the kernel takes about as long as sending a message (10 µs if the hypervisor
// implements the timer). So it is set at most once in graceTime instead of for each wait, and not at all if programs
// wait less often than that.
type grace struct {
	timer   timer
	running bool
	again   bool      // it was started again meanwhile
	noted   time.Time // when the last leader left
}

// start starts the timer. If it is running, end will report that it must run again.
func (g *grace) start() {
	if g.running {
		g.again = true
		return
	}
	g.running = true
	g.timer.set(graceTime)
}

// end is called when the timer has expired.
func (g *grace) end() (again bool) {
	again = g.again
	g.running, g.again = false, false
	return again
}

// note records that a leader leaves, and reports whether the previous one left less than graceTime ago.
func (g *grace) note() (often bool) {
	now := time.Now()
	often = now.Sub(g.noted) < graceTime
	g.noted = now
	return often
}
