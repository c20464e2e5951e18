// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// The errors of this package and of every Provider. Each unwraps to the errno that libibverbs returns for the same
// failure.
var (
	ErrInvalid = errno.New("invalid argument", unix.EINVAL)
	ErrState   = errno.New("wrong queue pair state", unix.EINVAL)
	// ErrQueueFull means that all slots of a queue hold requests: poll, and post again. The slot of a receive or of a
	// signaled send is free when its completion has been polled, that of an unsignaled send when the card has finished
	// it, and that of an SRQ's receive when the card has dequeued it. If all sends are unsignaled there is no
	// completion to poll: wait with QP.Drain, or signal every n-th send.
	ErrQueueFull   = errno.New("queue is full", unix.ENOMEM)
	ErrLimit       = errno.New("limit reached", unix.ENOMEM)
	ErrBusy        = errno.New("still in use", unix.EBUSY)
	ErrPermission  = errno.New("not permitted", unix.EPERM)
	ErrUnsupported = errno.New("not supported", unix.EOPNOTSUPP)
	ErrUnreachable = errno.New("destination unreachable", unix.EHOSTUNREACH)
	ErrNoGID       = errno.New("no such GID", unix.ENODATA)
	ErrCQOverrun   = errno.New("completion queue was overrun", unix.EOVERFLOW)
	ErrDeviceFatal = errno.New("device has failed", unix.EIO)
	ErrClosed      = errno.New("device is closed", unix.ENODEV)
	// ErrObjectClosed means that a CQ, queue pair or other object has been closed.
	ErrObjectClosed = errno.New("closed already", unix.EINVAL)
	// ErrHost means that the host's kernel refused a request or failed to process it. The kernel's error is wrapped
	// too.
	ErrHost = errno.New("the host refused", unix.EIO)
	// ErrAddrNotAvail means that an address or port is not available: it is not an address of the card, no port is
	// free, or the group was not joined.
	ErrAddrNotAvail = errno.New("address not available", unix.EADDRNOTAVAIL)
	ErrAddrInUse    = errno.New("address in use", unix.EADDRINUSE)
	ErrNotFound     = errno.New("not found", unix.ENOENT)
)

// kinds are the errors above.
var kinds = []error{
	ErrInvalid, ErrState, ErrQueueFull, ErrLimit, ErrBusy, ErrPermission, ErrUnsupported, ErrUnreachable, ErrNoGID,
	ErrCQOverrun, ErrDeviceFatal, ErrClosed, ErrObjectClosed, ErrHost, ErrAddrNotAvail, ErrAddrInUse, ErrNotFound,
}

// KindOf returns the Err value of this package that err is or wraps, or nil.
func KindOf(err error) error {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// errNil is the error for a nil object or nil attributes, often after an unchecked error.
var errNil = fmt.Errorf("%w: the object or its attributes are nil", ErrInvalid)

// count formats a number of things for an error: "1 completion", "2 completions".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkContext refuses a nil context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: the context is nil; context.Background() waits without a limit", ErrInvalid)
	}
	return nil
}

// BadWRError identifies the request of a list that was refused (bad_wr in libibverbs). The requests before it are
// queued; it and those after it are not.
type BadWRError struct {
	Index int // in the list that was posted
	Err   error
}

func (e *BadWRError) Error() string { return fmt.Sprintf("work request %d: %v", e.Index, e.Err) }

// Unwrap returns the reason.
func (e *BadWRError) Unwrap() error { return e.Err }
