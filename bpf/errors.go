package bpf

import (
	"golang.org/x/sys/unix"
)

var (
	// ErrPermission: the process lacks a capability. It is EPERM.
	ErrPermission error = &sentinel{"not permitted", unix.EPERM}

	// ErrAttached: the interface has an XDP program, and takes only one. It is EBUSY.
	ErrAttached error = &sentinel{"the interface has another XDP program", unix.EBUSY}

	// ErrDetached: the program is not on its interface any more. It is ENOLINK.
	ErrDetached error = &sentinel{"the steering program was taken off the interface", unix.ENOLINK}

	// ErrNoNative: the driver does not run XDP programs, or not with the interface's
	// present MTU, offloads or queues. It is EOPNOTSUPP.
	ErrNoNative error = &sentinel{"no native XDP", unix.EOPNOTSUPP}

	// ErrTableFull: no room for another address or group. It is ENOSPC.
	ErrTableFull error = &sentinel{"the table is full", unix.ENOSPC}

	// ErrInvalid: an argument that can never be right. It is EINVAL.
	ErrInvalid error = &sentinel{"invalid argument", unix.EINVAL}
)

// sentinel is an error with its errno, both of which errors.Is finds.
type sentinel struct {
	text  string
	errno unix.Errno
}

func (e *sentinel) Error() string { return e.text }

func (e *sentinel) Unwrap() error { return e.errno }
