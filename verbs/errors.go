package verbs

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// sentinel is an error that stands for an errno: errors.Is holds for both.
type sentinel struct {
	text  string
	errno unix.Errno
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Unwrap() error { return s.errno }

// The errors of this package and of what implements Provider. Each unwraps to the errno
// that libibverbs gives for the same mistake.
var (
	ErrInvalid error = &sentinel{"invalid argument", unix.EINVAL}
	ErrState   error = &sentinel{"wrong queue pair state", unix.EINVAL}
	// ErrQueueFull means that all slots of a queue hold requests. A send's slot is free when
	// the card has carried it out and, if it is signaled, its completion has been polled; a
	// receive's when its completion has been polled. So poll, and post again. With unsignaled
	// sends alone there is nothing to poll: their slots come free by themselves, which QP.Drain
	// waits for; or have every n-th signaled.
	ErrQueueFull   error = &sentinel{"queue is full", unix.ENOMEM}
	ErrLimit       error = &sentinel{"limit reached", unix.ENOMEM}
	ErrBusy        error = &sentinel{"still in use", unix.EBUSY}
	ErrPermission  error = &sentinel{"not permitted", unix.EPERM}
	ErrUnsupported error = &sentinel{"not supported", unix.EOPNOTSUPP}
	ErrUnreachable error = &sentinel{"destination unreachable", unix.EHOSTUNREACH}
	ErrNoGID       error = &sentinel{"no such GID", unix.EADDRNOTAVAIL}
	ErrCQOverrun   error = &sentinel{"completion queue was overrun", unix.EOVERFLOW}
	ErrDeviceFatal error = &sentinel{"device has failed", unix.EIO}
	ErrClosed      error = &sentinel{"device is closed", unix.ENODEV}
	// ErrObjectClosed is for a CQ, queue pair or other object that has been closed.
	ErrObjectClosed error = &sentinel{"closed already", unix.EINVAL}
)

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
