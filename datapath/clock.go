package datapath

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the card's free-running clock, CLOCK_MONOTONIC in nanoseconds, and the wall clock beside it.
// One reading of the time gives both, by a call that needs no system call.
type clock struct {
	start time.Time
	since uint64 // ns of CLOCK_MONOTONIC at start
}

// newClock finds what CLOCK_MONOTONIC is at a time of Go's. It asks for one between two readings of the
// other, several times, since anything may come between; the closest pair counts.
func newClock() (c clock) {
	closest := uint64(math.MaxUint64)
	for range 64 {
		before, now, after := monotonic(), time.Now(), monotonic()
		if apart := after - before; apart < closest {
			closest, c = apart, clock{now, before + apart/2}
		}
	}
	return c
}

func monotonic() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail: the clock exists
	return uint64(now.Nano())
}

// read gives both clocks, in ns.
func (c *clock) read() (free, wall uint64) {
	now := time.Now()
	return c.since + uint64(now.Sub(c.start)), uint64(now.UnixNano())
}

// Clock is the card's free-running clock now, in ns.
func (e *Engine) Clock() uint64 {
	free, _ := e.clock.read()
	return free
}
