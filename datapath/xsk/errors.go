package xsk

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Errors of Open, Err and Stats. Each unwraps to its errno. An invalid Config is a plain EINVAL;
// its text says which field is wrong.
var (
	// ErrPermission: the process may not open AF_XDP sockets.
	ErrPermission = fmt.Errorf("AF_XDP needs CAP_NET_RAW: %w", unix.EPERM)
	// ErrUnsupported: the kernel has no AF_XDP, or a sandbox hides it.
	ErrUnsupported = fmt.Errorf("no AF_XDP: CONFIG_XDP_SOCKETS is not set, "+
		"or systemd's RestrictAddressFamilies= does not name it: %w", unix.EAFNOSUPPORT)
	// ErrLockedMemory: the UMEM exceeds what the user may lock.
	ErrLockedMemory = fmt.Errorf("too much locked memory: %w", unix.ENOBUFS)
	// ErrBusyPoll: the process may not turn on busy polling.
	ErrBusyPoll = fmt.Errorf("busy polling needs CAP_NET_ADMIN: %w", unix.EPERM)
	// ErrMultiBuffer: the kernel does not know XDP_USE_SG.
	ErrMultiBuffer = fmt.Errorf("frames of several chunks (XDP_USE_SG) need Linux 6.6: %w", unix.EOPNOTSUPP)
	// ErrZeroCopy: ZeroCopy was asked for and the driver does not support it.
	ErrZeroCopy = fmt.Errorf("the driver has no zero-copy for this configuration: %w", unix.EOPNOTSUPP)
	// ErrQueueBusy: another socket is bound to the queue.
	ErrQueueBusy = fmt.Errorf("another AF_XDP socket holds the queue: %w", unix.EBUSY)
	// ErrNoQueue: the queue number is too high.
	ErrNoQueue = fmt.Errorf("the interface has no such queue, see ethtool -l: %w", unix.EINVAL)
	// ErrNoInterface: there is no such interface in this network namespace.
	ErrNoInterface = fmt.Errorf("no such interface in this network namespace: %w", unix.ENODEV)

	// ErrDown: the interface is down. Frames wait in the TX ring until it is up again.
	ErrDown = fmt.Errorf("interface is down: %w", unix.ENETDOWN)
	// ErrGone: the interface does not exist any more; the socket can only be closed.
	ErrGone = fmt.Errorf("interface is gone: %w", unix.ENXIO)
	// ErrClosed: the socket was closed.
	ErrClosed = fmt.Errorf("AF_XDP socket is closed: %w", unix.EBADF)
)
