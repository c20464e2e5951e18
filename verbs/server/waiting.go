package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// waiting is the context of a command that waits. It ends for the reason that the client gives.
type waiting struct {
	context.Context
	done chan struct{}

	mu    sync.Mutex
	cause error
}

func (w *waiting) Done() <-chan struct{} { return w.done }

func (w *waiting) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cause
}

func (w *waiting) cancel(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cause == nil {
		w.cause = cause
		close(w.done)
	}
}

func (c *connection) startWaiting(id uint32) (*waiting, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == maxWaiting {
		return nil, fmt.Errorf("%w: this program has %d commands that wait already; let some end first", verbs.ErrLimit, maxWaiting)
	}
	if c.waiting[id] != nil {
		return nil, fmt.Errorf("%w: request %d waits already", verbs.ErrInvalid, id)
	}
	w := &waiting{Context: context.Background(), done: make(chan struct{})}
	c.waiting[id] = w
	return w, nil
}

func (c *connection) endWaiting(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// cancel ends the wait of a command. One that has ended by itself is not there any more.
func (c *connection) cancel(id uint32, reason proto.CancelReason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[id]; w != nil && reason == proto.DeadlineExceeded {
		w.cancel(context.DeadlineExceeded)
	} else if w != nil {
		w.cancel(context.Canceled)
	}
}
