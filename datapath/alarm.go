package datapath

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// alarm is a timer of the kernel that wakes the worker or the leader when events that were put off are
// due, or a connection's time has come. It runs only while there are any, and is set at most once for each
// time at which it rings.
type alarm struct {
	fd int
	at time.Time // when it rings, or has rung
}

func (a *alarm) open() (err error) {
	if a.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return fmt.Errorf("alarm: %w", err)
	}
	return nil
}

// set makes it ring at that time. If it rings before that anyway, the round that this causes sets it
// again.
func (a *alarm) set(at, now time.Time) {
	if a.at.After(now) && !at.Before(a.at) {
		return
	}
	a.at = at
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(max(at.Sub(now).Nanoseconds(), 1))}
	_ = unix.TimerfdSettime(a.fd, 0, &value, nil)
}

// stop ends it, also if it has rung.
func (a *alarm) stop() {
	a.at = time.Time{}
	_ = unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{}, nil) // what has rung is not readable any more
}

// close closes it; from then on set does nothing.
func (a *alarm) close() {
	_ = unix.Close(a.fd)
	a.fd = -1
}

// setAlarm makes it ring when the engine has something to do next. One that has rung is stopped: who sleeps
// on it would be woken for ever.
func (e *Engine) setAlarm() {
	at := e.earliest
	timed := !e.timers.empty()
	if timed && (at.IsZero() || e.timers.earliest().Before(at)) {
		at = e.timers.earliest()
	}
	if e.timers.timed.Load() != timed {
		e.timers.timed.Store(timed)
	}
	switch {
	case !at.IsZero():
		e.alarm.set(at, e.now())
	case !e.alarm.at.IsZero():
		e.alarm.stop()
	}
}
