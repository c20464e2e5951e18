// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
)

// Life is the lifetime of an object: a context that End cancels, and the commands that Close waits for.
type Life struct {
	context.Context // its cause after End is the error that calls return
	cancel          context.CancelCauseFunc
	closed          error

	mu       sync.Mutex
	commands sync.WaitGroup
}

// Begin begins the life. closed is the error of calls after its end.
func (l *Life) Begin(closed error) {
	l.Context, l.cancel = context.WithCancelCause(context.Background())
	l.closed = closed
}

// Enter begins a command that Wait waits for. The caller calls Leave afterwards, unless there is an error.
func (l *Life) Enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Err() != nil {
		return l.closed
	}
	l.commands.Add(1)
	return nil
}

// Leave ends a command.
func (l *Life) Leave() { l.commands.Done() }

// Go runs a command in a goroutine. The life must not have ended.
func (l *Life) Go(command func()) { l.commands.Go(command) }

// End ends the life and reports whether it had not ended before. No command begins afterwards.
func (l *Life) End() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Err() != nil {
		return false
	}
	l.cancel(l.closed)
	return true
}

// Wait waits until all commands have ended.
func (l *Life) Wait() { l.commands.Wait() }

// Explain returns the error that a call returns instead of err. After the end of the life it is the error passed to
// Begin. An error from a context or a card that the program has closed is net.ErrClosed too; one from a device that has
// failed is not.
func (l *Life) Explain(err error) error {
	switch {
	case err == nil || errors.Is(err, net.ErrClosed):
		return err
	case l.Err() != nil:
		return l.closed
	case errors.Is(err, verbs.ErrClosed):
		return errno.Kin(err.Error(), err, net.ErrClosed)
	}
	return err
}

// Freed returns the error of a command that frees an object. On a device that is closed or has failed the object is
// already free, so that is not an error.
func Freed(err error) error {
	if errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrDeviceFatal) {
		return nil
	}
	return err
}

// Free closes an object, unless it is nil. Its error is that of Freed.
func Free[T any, P interface {
	*T
	Close() error
}](object P) error {
	if object == nil {
		return nil
	}
	return Freed(object.Close())
}
