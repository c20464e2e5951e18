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

// Life is the lifetime of an object: a context that End cancels, and the commands for which Wait waits.
type Life struct {
	context.Context // after End its cause is the error that calls return
	cancel          context.CancelCauseFunc
	closed          error

	mu       sync.Mutex
	commands sync.WaitGroup
}

// Begin begins the life. closed is the error of calls after End.
func (l *Life) Begin(closed error) {
	l.Context, l.cancel = context.WithCancelCause(context.Background())
	l.closed = closed
}

// Enter begins a command, for which Wait waits. The caller must call Leave at its end, unless Enter returns an error.
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

// Go runs a command in a goroutine, for which Wait waits. The life must not have ended.
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

// Explain returns the error that a call returns instead of err. After the end of the life this is the error passed to
// Begin. An error because the program has closed the context or the card also wraps net.ErrClosed; the error of a
// device that has failed does not.
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

// Freed returns the error of a command that frees an object. It returns nil if the device is closed or has failed,
// because the object is then already free.
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
