// SPDX-License-Identifier: Apache-2.0

package runner

import "sync/atomic"

// callers holds the eventfds of programs in other processes. Such a program calls by writing to its eventfd, which
// wakes the worker directly. If a goroutine read the eventfds and woke the worker, each message would take two more
// thread switches. The worker is notified of each write (EPOLLET) and does not read the eventfds, so a program cannot
// block it.
type callers struct {
	byFD  map[int]func() // under descriptors.mu
	there atomic.Bool    // byFD is not empty
}

// HearCalls makes the worker watch an eventfd, and call the function called after writes to it. Any goroutine may call
// HearCalls, except under the lease.
func (r *Runner) HearCalls(fd int, called func()) error { return r.sleeper.hearCalls(fd, called) }

// EndCalls ends HearCalls for an eventfd. Any goroutine may call it, except under the lease.
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

// hear calls the function of an eventfd that was written to.
func (s *descriptors) hear(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if called := s.callers.byFD[fd]; called != nil {
		called()
	}
}
