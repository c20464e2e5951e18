package runner

import "sync/atomic"

// This file decides whom a frame wakes. While the worker sleeps, one of these holds: a leader is there;
// the descriptors are watched and not muted, so that a frame wakes the worker; or the grace runs, at
// the end of which one of the others holds.

// attend makes a frame wake somebody: the worker, unless a leader is there.
func (s *descriptors) attend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch(); !s.led {
		s.unmute()
	}
}

// takeOver makes the caller the leader: a frame wakes it, and not the worker.
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

// handOver ends that. A frame wakes the worker from now on; but if leaders come and go quickly and
// nobody else waits, only after the grace. The alarm is no frame: hurry says that it will ring.
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

// leave stops watching until the grace has ended. A program that always finds a completion when it
// wants to wait has more to do than it can, and need not be told of more: each frame of a watched
// descriptor costs the kernel a wake-up.
func (s *descriptors) leave(waiters *atomic.Int32) {
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
func (s *descriptors) ignore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwatch()
}

// endGrace makes a frame wake the worker, unless a leader is there, or has been there meanwhile.
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

// sleepOn replaces the descriptors. Who sleeps is woken by the new ones from then on.
func (s *descriptors) sleepOn(list []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := s.watched
	s.unwatch()
	if s.list = list; watched {
		s.watch()
	}
}

// watch puts the descriptors into their set. The caller holds mu, as those of the following do.
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
