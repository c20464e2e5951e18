// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Errors of Open, Err and Stats. Each unwraps to its errno. The error for an invalid Config is EINVAL, with the invalid
// field in its text.
var (
	// ErrPermission: the process is not permitted to open AF_XDP sockets.
	ErrPermission = fmt.Errorf("AF_XDP requires CAP_NET_RAW: %w", unix.EPERM)
	// ErrUnsupported: the kernel does not support AF_XDP, or a sandbox hides it.
	ErrUnsupported = fmt.Errorf("AF_XDP is not supported: CONFIG_XDP_SOCKETS is not set, "+
		"or systemd's RestrictAddressFamilies= excludes it: %w", unix.EAFNOSUPPORT)
	// ErrLockedMemory: the UMEM exceeds the user's limit of locked memory.
	ErrLockedMemory = fmt.Errorf("too much locked memory: %w", unix.ENOBUFS)
	// ErrBusyPoll: the process is not permitted to enable busy polling.
	ErrBusyPoll = fmt.Errorf("busy polling requires CAP_NET_ADMIN: %w", unix.EPERM)
	// ErrMultiBuffer: the kernel does not support XDP_USE_SG.
	ErrMultiBuffer = fmt.Errorf("frames of several chunks (XDP_USE_SG) require Linux 6.6: %w", unix.EOPNOTSUPP)
	// ErrZeroCopy: ZeroCopy was requested and the driver does not support it.
	ErrZeroCopy = fmt.Errorf("the driver does not support zero-copy in this configuration: %w", unix.EOPNOTSUPP)
	// ErrQueueBusy: another socket is bound to the queue.
	ErrQueueBusy = fmt.Errorf("another AF_XDP socket is bound to the queue: %w", unix.EBUSY)
	// ErrNoQueue: the interface has no queue with this number.
	ErrNoQueue = fmt.Errorf("the queue does not exist (see ethtool -l): %w", unix.EINVAL)
	// ErrNoInterface: the interface does not exist in this network namespace.
	ErrNoInterface = fmt.Errorf("the interface does not exist in this network namespace: %w", unix.ENODEV)

	// ErrDown: the interface is down. Frames wait in the TX ring until it is up again.
	ErrDown = fmt.Errorf("interface is down: %w", unix.ENETDOWN)
	// ErrGone: the interface no longer exists; the socket can only be closed.
	ErrGone = fmt.Errorf("interface no longer exists: %w", unix.ENXIO)
	// ErrClosed: the socket was closed.
	ErrClosed = fmt.Errorf("AF_XDP socket is closed: %w", unix.EBADF)
)
