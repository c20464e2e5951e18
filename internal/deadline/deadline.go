// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"os"
	"sync"
	"time"
)

// Deadline is a time that can be changed while other goroutines wait for it. Its methods are safe for
// concurrent use.
type Deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed at the time
}

// New returns a Deadline without a time.
func New() *Deadline { return &Deadline{over: make(chan struct{})} }

// Set changes the deadline, also for calls that are waiting; the zero time removes it.
func (d *Deadline) Set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // the timer has expired and is closing over
	}
	d.timer = nil
	if isClosed(d.over) {
		d.over = make(chan struct{})
	}
	switch left := time.Until(at); {
	case at.IsZero():
	case left <= 0:
		close(d.over)
	default:
		over := d.over
		d.timer = time.AfterFunc(left, func() { close(over) })
	}
}

// Context returns a context that ends at the deadline, including later changes.
func (d *Deadline) Context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return expiry{d.over}
}

// expiry is a context whose error is os.ErrDeadlineExceeded.
type expiry struct{ over chan struct{} }

// Done is closed at the deadline.
func (x expiry) Done() <-chan struct{} { return x.over }

// Err returns os.ErrDeadlineExceeded after the deadline.
func (x expiry) Err() error {
	if isClosed(x.over) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Deadline reports no deadline, because it may change.
func (x expiry) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value returns nil.
func (x expiry) Value(any) any { return nil }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
