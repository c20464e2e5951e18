// SPDX-License-Identifier: Apache-2.0

package runner

import "sync/atomic"

// Choice of the goroutine that a frame wakes. While the worker sleeps, one of these holds: there is a leader; the
// descriptors are watched and not muted, so that a frame wakes the worker; or the grace is running, and one of the
// others holds after it.

// attend makes frames wake the worker, unless there is a leader.
func (s *descriptors) attend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch(); !s.led {
		s.unmute()
	}
}

// takeOver makes the caller the leader: a frame wakes it instead of the worker.
func (s *descriptors) takeOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch()
	s.led = true
	if !s.muted && !s.closed {
		s.muted = true
		s.all.mute(s.frames.fd)
	}
}

// handOver ends takeOver. A frame wakes the worker from now on; if leaders change quickly and no other goroutine waits,
// only after the grace. hurry reports that the alarm will expire, which is not a frame.
func (s *descriptors) handOver(waiters *atomic.Int32, hurry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.led = false
	if often := s.grace.note(); often && !hurry && waiters.Load() == 1 && !s.closed {
		s.grace.start()
	} else {
		s.unmute()
	}
}

// leave stops watching until the grace has ended. A program that always finds a completion when it is about to wait is
// saturated, and needs no wake-up: each frame of a watched descriptor costs the kernel one.
func (s *descriptors) leave(waiters *atomic.Int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.led || s.closed || waiters.Load() > 0 {
		return
	}
	s.unwatch()
	s.grace.start()
}

// ignore stops watching until attend or takeOver: programs, or the worker, poll for frames continuously.
func (s *descriptors) ignore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
}

// endGrace makes a frame wake the worker, unless there is a leader, or was one meanwhile.
func (s *descriptors) endGrace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	drain(s.graceFD)
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

// sleepOn replaces the descriptors. Sleepers are woken by the new ones from then on.
func (s *descriptors) sleepOn(list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := s.watched
	s.unwatch()
	if s.list = list; watched {
		s.watch()
	}
}

// watch adds the descriptors to their set. The caller holds mu, as for the functions below.
func (s *descriptors) watch() {
	if s.watched || s.closed {
		return
	}
	s.watched = true
	for _, fd := range s.list {
		_ = s.frames.add(fd)
	}
}

func (s *descriptors) unwatch() {
	if !s.watched || s.closed {
		return
	}
	s.watched = false
	for _, fd := range s.list {
		s.frames.remove(fd)
	}
}

func (s *descriptors) unmute() {
	if s.muted && !s.closed {
		s.muted = false
		s.all.unmute(s.frames.fd)
	}
}
