// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
)

// life is the state of a card or a session. It runs, may fail, and is finally closed:
//
//	running ─── fail ──► failed: err is the cause
//	   │                   │
//	   └────── stop ───────┴──► stopped: err is verbs.ErrClosed ── work ends, all is freed ──► over
//
// Goroutines that wait for events also wait for done. release closes it: immediately on stop, and after a failure when
// the outstanding requests are flushed.
type life struct {
	stopping chan struct{}
	done     chan struct{}
	over     chan struct{}  // closed when everything is freed
	work     sync.WaitGroup // ends before over is closed; no work is added after stop

	mu      sync.Mutex // innermost; held to change the state
	failure atomic.Pointer[error]
}

func newLife() life {
	return life{stopping: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{})}
}

// stop starts the end; it returns false if it was called before.
func (l *life) stop() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeOnce(l.stopping)
}

// fail stores the cause of a failure; it returns false if the life has failed or was stopped before.
func (l *life) fail(cause error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure.Load() != nil || isClosed(l.stopping) {
		return false
	}
	l.failure.Store(&cause)
	return true
}

// release ends all waits; it returns false if it was called before.
func (l *life) release() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeOnce(l.done)
}

func (l *life) stopped() bool { return isClosed(l.stopping) }

// err returns verbs.ErrClosed after stop, the cause after a failure, and nil otherwise.
func (l *life) err() error {
	if l.stopped() {
		return verbs.ErrClosed
	}
	if failure := l.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

func closeOnce(c chan struct{}) (first bool) {
	if isClosed(c) {
		return false
	}
	close(c)
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
