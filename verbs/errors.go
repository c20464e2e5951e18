package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// The errors of this package and of every Provider. Each unwraps to the errno that libibverbs gives
// for the same failure.
var (
	ErrInvalid = errno.New("invalid argument", unix.EINVAL)
	ErrState   = errno.New("wrong queue pair state", unix.EINVAL)
	// ErrQueueFull means that all slots of a queue hold requests: poll, and post again. The slot of
	// a receive or of a signaled send is free when its completion has been polled, that of an
	// unsignaled send when the card has carried it out, and that of an SRQ's receive when the card
	// has taken it. If all sends are unsignaled there is
	// nothing to poll: wait with QP.Drain, or make every n-th one signaled.
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
	// ErrHost means that the host's kernel refused a request or could not answer it. The kernel's
	// own error is wrapped too.
	ErrHost = errno.New("the host refused", unix.EIO)
	// ErrAddrNotAvail means that an address or port cannot be had: it is not the card's, none is free,
	// or a group was not joined.
	ErrAddrNotAvail = errno.New("address not available", unix.EADDRNOTAVAIL)
	ErrAddrInUse    = errno.New("address in use", unix.EADDRINUSE)
	ErrNotFound     = errno.New("not found", unix.ENOENT)
)

// kinds are the errors above.
var kinds = []error{
	ErrInvalid, ErrState, ErrQueueFull, ErrLimit, ErrBusy, ErrPermission, ErrUnsupported, ErrUnreachable, ErrNoGID,
	ErrCQOverrun, ErrDeviceFatal, ErrClosed, ErrObjectClosed, ErrHost, ErrAddrNotAvail, ErrAddrInUse, ErrNotFound,
}

// KindOf gives the Err value of this package that err is or wraps, nil if there is none.
func KindOf(err error) error {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// errNil is for a nil object or nil attributes, often after an error that was not checked.
var errNil = fmt.Errorf("%w: nil, where an object or its attributes are needed", ErrInvalid)

// count is a number of things, for an error: "1 completion", "2 completions".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkContext refuses a nil context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: no context; context.Background() waits without an end", ErrInvalid)
	}
	return nil
}

// BadWRError says which request of a list was refused (bad_wr in libibverbs). Those before it are
// queued; it and those after it are not.
type BadWRError struct {
	Index int // in the list that was posted
	Err   error
}

func (e *BadWRError) Error() string { return fmt.Sprintf("work request %d: %v", e.Index, e.Err) }

// Unwrap gives the reason.
func (e *BadWRError) Unwrap() error { return e.Err }
