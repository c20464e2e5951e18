// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proto

import (
	"context"
	"errors"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ServiceTimeout is how long the service may take to respond to a new connection. Only tests on slow machines change it.
var ServiceTimeout = 10 * time.Second

// patience is the maximum time that an attempt waits in the kernel before it checks its context.
const patience = 100 * time.Millisecond

// Dial connects to the service's socket at a path. While the socket's backlog is full, connect(2) waits in turn, and Dial
// fails with EAGAIN at the deadline, or with the cause of ctx. Package net does not wait, since its sockets are
// non-blocking.
func Dial(ctx context.Context, path string, deadline time.Time) (*net.UnixConn, error) {
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
