package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// The errors of this package and of what implements Provider. Each unwraps to the errno
// that libibverbs gives for the same mistake.
var (
	ErrInvalid = errno.New("invalid argument", unix.EINVAL)
	ErrState   = errno.New("wrong queue pair state", unix.EINVAL)
	// ErrQueueFull means that all slots of a queue hold requests. A send's slot is free when
	// the card has carried it out and, if it is signaled, its completion has been polled; a
	// receive's when its completion has been polled. So poll, and post again. With unsignaled
	// sends alone there is nothing to poll: their slots come free by themselves, which QP.Drain
	// waits for; or have every n-th signaled.
	ErrQueueFull   = errno.New("queue is full", unix.ENOMEM)
	ErrLimit       = errno.New("limit reached", unix.ENOMEM)
	ErrBusy        = errno.New("still in use", unix.EBUSY)
	ErrPermission  = errno.New("not permitted", unix.EPERM)
	ErrUnsupported = errno.New("not supported", unix.EOPNOTSUPP)
	ErrUnreachable = errno.New("destination unreachable", unix.EHOSTUNREACH)
	ErrNoGID       = errno.New("no such GID", unix.EADDRNOTAVAIL)
	ErrCQOverrun   = errno.New("completion queue was overrun", unix.EOVERFLOW)
	ErrDeviceFatal = errno.New("device has failed", unix.EIO)
	ErrClosed      = errno.New("device is closed", unix.ENODEV)
	// ErrObjectClosed is for a CQ, queue pair or other object that has been closed.
	ErrObjectClosed = errno.New("closed already", unix.EINVAL)
	// ErrHost is for what the host's kernel refused, or could not tell; its own error is wrapped
	// beside this one.
	ErrHost = errno.New("the host refused", unix.EIO)
)

// kinds are the errors above.
var kinds = []error{
	ErrInvalid, ErrState, ErrQueueFull, ErrLimit, ErrBusy, ErrPermission, ErrUnsupported, ErrUnreachable, ErrNoGID,
	ErrCQOverrun, ErrDeviceFatal, ErrClosed, ErrObjectClosed, ErrHost,
}

// KindOf gives the error of this package that err is or wraps, nil if it is none of them.
func KindOf(err error) error {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// errNil is for an object or attributes that are none: often an error that was not looked at.
var errNil = fmt.Errorf("%w: nil, where an object or its attributes are needed", ErrInvalid)

// checkContext refuses the nil that a context must not be.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: no context; context.Background() waits without an end", ErrInvalid)
	}
	return nil
}

// BadWRError says which request of a list was refused. Those before it are
// queued; it and those after it are not (what bad_wr says in libibverbs).
type BadWRError struct {
	Index int // in the list that was posted
	Err   error
}

func (e *BadWRError) Error() string { return fmt.Sprintf("work request %d: %v", e.Index, e.Err) }

// Unwrap gives the reason.
func (e *BadWRError) Unwrap() error { return e.Err }
