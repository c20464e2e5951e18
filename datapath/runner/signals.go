// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"sync"
	"sync/atomic"
	"time"
)

// signals is a sleeper for in-memory links, whose senders are goroutines of this process. The worker and the leader
// sleep on channels. It therefore also works in testing/synctest bubbles, where time does not advance while a goroutine
// is blocked in a system call.
//
//	arrived ──► leader, if there is one ──► lead
//	       └──► worker, unless in a grace period or programs run rounds ──► sleep
type signals struct {
	worker, leader chan struct{} // of capacity 1
	over           atomic.Bool   // close was called

	mu      sync.Mutex // guards the fields below
	grace   grace
	led     bool // there is a leader
	watched bool // a frame wakes the worker; false while there is a leader
	pending bool // a frame has arrived, and neither has the worker been woken nor has a leader run a round since
	calls   calls
}

func newSignals() *signals {
	s := &signals{worker: make(chan struct{}, 1), leader: make(chan struct{}, 1)}
	s.grace.timer = newRuntimeTimer(s.endGrace)
	return s
}

// signal wakes the receiver of a channel of capacity 1, now or at its next receive.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// sleep implements sleeper.
func (s *signals) sleep(timeout time.Duration) {
	s.attend()
	if timeout == 0 {
		<-s.worker
		return
	}
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case <-s.worker:
	case <-late.C:
	}
}

// wake implements sleeper.
func (s *signals) wake() { signal(s.worker) }

// arrived implements sleeper.
func (s *signals) arrived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = true
	switch {
	case s.led:
		signal(s.leader)
	case s.watched:
		s.watch()
	}
}

// lead implements sleeper. It does not return after wakeLeader: rounds checks whether the leader's wait is over.
func (s *signals) lead(rounds func(uintptr) (over bool)) (again bool) {
	for !rounds(0) && !s.over.Load() {
		<-s.leader
		s.mu.Lock()
		s.pending = false
		s.mu.Unlock()
	}
	return false
}

// wakeLeader implements sleeper.
func (s *signals) wakeLeader() { signal(s.leader) }

// watch makes frames wake the worker, including frames that have arrived before. The caller holds mu. There must be no
// leader.
func (s *signals) watch() {
	s.watched = true
	if s.pending {
		s.pending = false
		signal(s.worker)
	}
}

// attend implements sleeper.
func (s *signals) attend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.led {
		s.watch()
	}
}

// takeOver implements sleeper. The leader begins with a round, which finds pending frames.
func (s *signals) takeOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.led, s.watched, s.pending = true, false, false
}

// handOver implements sleeper.
func (s *signals) handOver(waiters *atomic.Int32, hurry bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.led = false
	select {
	case <-s.leader: // discard the signal: the next leader begins with a round
	default:
	}
	if often := s.grace.note(); often && !hurry && waiters.Load() == 1 && !s.over.Load() {
		s.grace.start()
	} else {
		s.watch()
	}
}

// leave implements sleeper.
func (s *signals) leave(waiters *atomic.Int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.led || s.over.Load() || waiters.Load() > 0 {
		return
	}
	s.watched = false
	s.grace.start()
}

// ignore implements sleeper.
func (s *signals) ignore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = false
}

// endGrace is called by the timer.
func (s *signals) endGrace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.grace.end()
	switch {
	case s.led || s.over.Load():
	case again:
		s.grace.start()
	default:
		s.watch()
	}
}

// sleepOn implements sleeper. It does nothing, as there are no descriptors.
func (s *signals) sleepOn([]int) {}

// close implements sleeper.
func (s *signals) close() {
	s.over.Store(true)
	signal(s.leader)
	s.mu.Lock()
	s.grace.timer.close()
	s.mu.Unlock()
	s.calls.close()
}

// hearCalls implements sleeper.
func (s *signals) hearCalls(fd int, called func()) error {
	return s.calls.hear(fd, func() { called(); s.wake() })
}

// endCalls implements sleeper.
func (s *signals) endCalls(fd int) { s.calls.end(fd) }

// takeCalls implements sleeper. It does nothing, as a goroutine handles the calls.
func (s *signals) takeCalls() {}
