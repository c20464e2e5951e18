package datapath

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// callers are the programs of other processes: each calls by sending a byte to a descriptor, which wakes
// the worker itself. Were a goroutine to read it and wake the worker, each message would take two more
// switches between threads.
type callers struct {
	byFD  map[int]*Session // under sleeper.mu
	there atomic.Bool      // there are any
	call  func(*Session)
}

// callRounds is how many rounds a busy worker runs until it looks for calls of suspended sessions.
const callRounds = 32

// HearCalls has the worker read a descriptor, of which reads do not block, and take each byte for a Wake of
// the session. Any goroutine may call it, but under the lease.
func (e *Engine) HearCalls(s *Session, fd int) error { return e.worker.sleeper.hearCalls(s, fd) }

// EndCalls ends HearCalls: the descriptor is not read any more. Any goroutine may call it, but under the
// lease.
func (e *Engine) EndCalls(fd int) { e.worker.sleeper.endCalls(fd) }

func (s *sleeper) hearCalls(session *Session, fd int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.callers.byFD[fd] = session
	s.callers.there.Store(true)
	return s.all.add(fd)
}

func (s *sleeper) endCalls(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.callers.byFD[fd] == nil || s.closed {
		return
	}
	s.all.remove(fd)
	delete(s.callers.byFD, fd)
	s.callers.there.Store(len(s.callers.byFD) > 0)
}

// hear takes the calls of a descriptor that is readable. One whose program has closed its end is not
// listened to any more.
func (s *sleeper) hear(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.callers.byFD[fd]
	if session == nil {
		return
	}
	var bytes [64]byte
	n, err := unix.Read(fd, bytes[:])
	if n == 0 || err != nil && err != unix.EAGAIN && err != unix.EINTR {
		s.all.remove(fd)
	}
	s.callers.call(session)
}
