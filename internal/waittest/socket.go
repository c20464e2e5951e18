// SPDX-License-Identifier: Apache-2.0

//go:build linux

package waittest

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// FullSocket returns the path of a unix socket that accepts no connections and whose backlog is full.
func FullSocket(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	socket := func() int {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	listener := socket()
	if err := errors.Join(unix.Bind(listener, &unix.SockaddrUnix{Name: path}), unix.Listen(listener, 1)); err != nil {
		t.Fatal(err)
	}
	for {
		switch err := unix.Connect(socket(), &unix.SockaddrUnix{Name: path}); {
		case errors.Is(err, unix.EAGAIN):
			return path
		case err != nil:
			t.Fatal(err)
		}
	}
}
