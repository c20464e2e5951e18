package runner

import "time"

// graceTime is how long the worker leaves the frames to a program that has stopped waiting and will
// soon wait again. Frames that come meanwhile wait for the program, at most for twice this time.
const graceTime = time.Millisecond

// grace is that time. To set a timer of the kernel takes about as long as to send a message (10 µs where the timer is
// the hypervisor's), so it is not set for each wait, but at most once in graceTime, and not at all where programs wait
// less often than that.
type grace struct {
	timer   timer
	running bool
	again   bool      // it was started anew meanwhile
	noted   time.Time // when the last leader left
}

// start starts the timer. If it runs already, end will say that it is to run once more.
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

// note notes that a leader leaves, and reports whether the one before left less than graceTime ago.
func (g *grace) note() (often bool) {
	now := time.Now()
	often = now.Sub(g.noted) < graceTime
	g.noted = now
	return often
}
