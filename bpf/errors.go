// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

var (
	// ErrPermission means that the process lacks a capability. It is EPERM.
	ErrPermission = errno.New("not permitted", unix.EPERM)

	// ErrAttached means that the interface already has an XDP program, and can have only one. It is EBUSY.
	ErrAttached = errno.New("the interface has another XDP program", unix.EBUSY)

	// ErrDetached means that the program is no longer attached to its interface. It is ENOLINK.
	ErrDetached = errno.New("the steering program was taken off the interface", unix.ENOLINK)

	// ErrNoNative means that the driver does not support XDP, or not with the interface's current MTU, offloads or
	// queues. It is EOPNOTSUPP.
	ErrNoNative = errno.New("no native XDP", unix.EOPNOTSUPP)

	// ErrTableFull means that the table has no space for another address or group. It is ENOSPC.
	ErrTableFull = errno.New("the table is full", unix.ENOSPC)

	// ErrInvalid means that an argument is out of range. It is EINVAL.
	ErrInvalid = errno.New("invalid argument", unix.EINVAL)
)
