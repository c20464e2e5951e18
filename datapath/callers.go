package datapath

import "sync/atomic"

// callers are the programs of other processes: each calls by writing to an eventfd, which wakes the worker
// itself. Were a goroutine to read it and wake the worker, each message would take two more switches between
// threads. The worker does not read it either: it hears each write (EPOLLET). So nothing that a program does
// with its end can make the worker wait.
type callers struct {
	byFD  map[int]*Session // under sleeper.mu
	there atomic.Bool      // there are any
	call  func(*Session)
}

// callRounds is how many rounds a busy worker runs until it looks for calls of suspended sessions.
const callRounds = 32

// HearCalls has the worker watch an eventfd, and take each write to it for a Wake of the session. Any goroutine may call it, but under the lease.
func (e *Engine) HearCalls(s *Session, fd int) error { return e.worker.sleeper.hearCalls(s, fd) }

// EndCalls ends HearCalls: the descriptor is not watched any more. Any goroutine may call it, but under the
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
	return s.all.addEdges(fd)
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

// hear takes the calls of a descriptor that was written to.
func (s *sleeper) hear(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.callers.byFD[fd]; session != nil {
		s.callers.call(session)
	}
}
