//go:build linux

package hca

import (
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs"
)

// life is how far a card or a session has come. It runs; it may fail, and is closed in the end:
//
//	running ─── fail ──► failed: err says why
//	   │                   │
//	   └────── stop ───────┴──► stopped: err is verbs.ErrClosed ── work ends, all is freed ──► over
//
// Who waits for something that cannot come any more waits for done, which release closes: at once when it is
// stopped, and after a failure when what was under way is flushed.
type life struct {
	stopping chan struct{}
	done     chan struct{}
	over     chan struct{}  // closed by who has freed everything
	work     sync.WaitGroup // what has to end before that. Nothing is added once it is stopped

	mu      sync.Mutex // innermost; of those who change it
	failure atomic.Pointer[error]
}

func newLife() life {
	return life{stopping: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{})}
}

// stop begins the end; false if it was called before.
func (l *life) stop() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeOnce(l.stopping)
}

// fail notes why nothing goes on, unless it has ended already.
func (l *life) fail(cause error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure.Load() != nil || isClosed(l.stopping) {
		return false
	}
	l.failure.Store(&cause)
	return true
}

// release ends all waits; false if it was called before.
func (l *life) release() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeOnce(l.done)
}

func (l *life) stopped() bool { return isClosed(l.stopping) }

// err is why it has ended: verbs.ErrClosed or the failure; nil while it runs.
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
