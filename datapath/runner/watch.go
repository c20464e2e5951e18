// SPDX-License-Identifier: Apache-2.0

package runner

import "sync/atomic"

// Choice of the goroutine that a frame wakes. While the worker sleeps, one of these conditions holds: there is a
// leader; or the descriptors are watched and not muted, so that a frame wakes the worker; or a grace period is in
// progress, after which one of the other conditions holds.

// attend implements sleeper.
func (s *descriptors) attend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch(); !s.led {
		s.unmute()
	}
}

// takeOver implements sleeper.
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

// handOver implements sleeper.
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

// leave implements sleeper. It stops watching the descriptors, because each frame of a watched descriptor costs the
// kernel a wake-up.
func (s *descriptors) leave(waiters *atomic.Int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.led || s.closed || waiters.Load() > 0 {
		return
	}
	s.unwatch()
	s.grace.start()
}

// ignore implements sleeper.
func (s *descriptors) ignore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
}

// endGrace ends a grace period: frames wake the worker again, unless there is a leader. If the grace period was started
// again meanwhile, endGrace starts a new one.
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

// sleepOn implements sleeper.
func (s *descriptors) sleepOn(list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := s.watched
	s.unwatch()
	if s.list = list; watched {
		s.watch()
	}
}

// watch adds the link's descriptors to frames. The caller holds mu, also for the functions below.
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
