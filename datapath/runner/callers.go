package runner

import "sync/atomic"

// callers are the programs of other processes: each calls by writing to an eventfd, which wakes the worker
// itself. Were a goroutine to read it and wake the worker, each message would take two more switches between
// threads. The worker does not read it either: it hears each write (EPOLLET). So nothing that a program does
// with its end can make the worker wait.
type callers struct {
	byFD  map[int]func() // under descriptors.mu
	there atomic.Bool    // there are any
}

// HearCalls has the worker watch an eventfd, and call called for each write to it. Any goroutine may call it, except
// under the lease.
func (r *Runner) HearCalls(fd int, called func()) error { return r.sleeper.hearCalls(fd, called) }

// EndCalls ends HearCalls: the descriptor is not watched any more. Any goroutine may call it, except under the lease.
func (r *Runner) EndCalls(fd int) { r.sleeper.endCalls(fd) }

func (s *descriptors) hearCalls(fd int, called func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.callers.byFD[fd] = called
	s.callers.there.Store(true)
	return s.all.addEdges(fd)
}

func (s *descriptors) endCalls(fd int) {
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
func (s *descriptors) hear(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if called := s.callers.byFD[fd]; called != nil {
		called()
	}
}
