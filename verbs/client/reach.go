//go:build linux

package client

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long an attempt waits in the kernel. After that it looks at its context.
const patience = 100 * time.Millisecond

// reach connects to the socket at a path. A server has room for so many who wait to be accepted; while there
// is none, connect(2) waits in turn, and fails with EAGAIN when its time is over. Go's own net does not wait:
// its sockets are non-blocking.
func reach(ctx context.Context, path string, deadline time.Time) (*net.UnixConn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := waitInTurn(ctx, fd, path, deadline); err != nil {
		return nil, err
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

func waitInTurn(ctx context.Context, fd int, path string, deadline time.Time) error {
	for ctx.Err() == nil {
		left := min(time.Until(deadline), patience)
		limit := unix.NsecToTimeval(max(left, time.Millisecond).Nanoseconds()) // 0 is for ever
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
		err := unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		again := errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
		if !again || left <= 0 {
			return os.NewSyscallError("connect", err)
		}
	}
	return context.Cause(ctx)
}
