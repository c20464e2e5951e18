package runner

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// This file decides whom a frame wakes. While the worker sleeps, one of these holds: a leader is there;
// the descriptors are watched and not muted, so that a frame wakes the worker; or the grace runs, at
// the end of which one of the others holds.

// attend makes a frame wake somebody: the worker, unless a leader is there.
func (s *sleeper) attend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch(); !s.led {
		s.unmute()
	}
}

// takeOver makes the caller the leader: a frame wakes it, and not the worker.
func (s *sleeper) takeOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch()
	s.led = true
	if !s.muted && !s.closed {
		s.muted = true
		s.all.mute(s.frames.fd)
	}
}

// handOver ends that. A frame wakes the worker from now on; but if leaders come and go quickly and
// nobody else waits, only after the grace. The alarm is no frame: hurry says that it will ring.
func (s *sleeper) handOver(waiters *atomic.Int32, hurry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.led = false
	if often := s.grace.note(); often && !hurry && waiters.Load() == 1 && !s.closed {
		s.grace.start()
	} else {
		s.unmute()
	}
}

// leave stops watching until the grace has ended. A program that always finds a completion when it
// wants to wait has more to do than it can, and need not be told of more: each frame of a watched
// descriptor costs the kernel a wake-up.
func (s *sleeper) leave(waiters *atomic.Int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.led || s.closed || waiters.Load() > 0 {
		return
	}
	s.unwatch()
	s.grace.start()
}

// ignore stops watching until attend or takeOver: programs, or the worker, look for frames all the
// time.
func (s *sleeper) ignore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
}

// endGrace makes a frame wake the worker, unless a leader is there, or has been there meanwhile.
func (s *sleeper) endGrace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.grace.end()
	switch {
	case s.led:
	case again:
		s.grace.start()
	default:
		s.watch()
		s.unmute()
	}
}

// sleepOn replaces the descriptors. Who sleeps is woken by the new ones from then on.
func (s *sleeper) sleepOn(descriptors []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := s.watched
	s.unwatch()
	if s.descriptors = descriptors; watched {
		s.watch()
	}
}

// watch puts the descriptors into their set. The caller holds mu, as those of the following do.
func (s *sleeper) watch() {
	if s.watched || s.closed {
		return
	}
	s.watched = true
	for _, fd := range s.descriptors {
		_ = s.frames.add(fd)
	}
}

func (s *sleeper) unwatch() {
	if !s.watched || s.closed {
		return
	}
	s.watched = false
	for _, fd := range s.descriptors {
		s.frames.remove(fd)
	}
}

func (s *sleeper) unmute() {
	if s.muted && !s.closed {
		s.muted = false
		s.all.unmute(s.frames.fd)
	}
}

// graceTime is how long the worker leaves the frames to a program that has stopped waiting and will
// soon wait again. Frames that come meanwhile wait for the program, at most for twice this time.
const graceTime = time.Millisecond

// grace is a timer of the kernel. A timer of the runtime would wake a second thread, to watch it. To
// set either takes about as long as to send a message (10 µs where the timer is the hypervisor's), so
// it is not set for each wait, but at most once in graceTime, and not at all where programs wait
// less often than that.
type grace struct {
	fd      int
	running bool
	again   bool      // it was started anew meanwhile
	noted   time.Time // when the last leader left
}

func (g *grace) open() (err error) {
	if g.fd, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		return fmt.Errorf("timer: %w", err)
	}
	return nil
}

// start starts the timer. If it runs already, end will say that it is to run once more.
func (g *grace) start() {
	if g.running {
		g.again = true
		return
	}
	g.running = true
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(graceTime.Nanoseconds())}
	_ = unix.TimerfdSettime(g.fd, 0, &value, nil)
}

// end is called when the timer has expired.
func (g *grace) end() (again bool) {
	drain(g.fd)
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
