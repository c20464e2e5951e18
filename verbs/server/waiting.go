// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// waitingCommands are the commands of a client that wait.
type waitingCommands struct {
	mu   sync.Mutex
	byID map[uint32]*waiting
}

// maxWaiting is the largest number of commands of a client that may wait at once.
const maxWaiting = 64

// waiting is the context of a command that waits. Its error is the reason that the client has given.
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

// start returns the context of a command that begins to wait.
func (l *waitingCommands) start(id uint32) (*waiting, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byID) == maxWaiting {
		return nil, fmt.Errorf("%w: this program has %d commands that wait already; let some end first", verbs.ErrLimit, maxWaiting)
	}
	if l.byID[id] != nil {
		return nil, fmt.Errorf("%w: request %d waits already", verbs.ErrInvalid, id)
	}
	if l.byID == nil {
		l.byID = map[uint32]*waiting{}
	}
	w := &waiting{Context: context.Background(), done: make(chan struct{})}
	l.byID[id] = w
	return w, nil
}

// end removes a command that has ended.
func (l *waitingCommands) end(id uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

// cancel ends the wait of a command, if it has not ended already.
func (l *waitingCommands) cancel(id uint32, reason proto.CancelReason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.byID[id]; w != nil && reason == proto.DeadlineExceeded {
		w.cancel(context.DeadlineExceeded)
	} else if w != nil {
		w.cancel(context.Canceled)
	}
}

// cancelAll ends the wait of all commands.
func (l *waitingCommands) cancelAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.byID {
		w.cancel(context.Canceled)
	}
}
