// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// epollSet is an epoll set. A goroutine sleeps on it in epoll_wait(2), which blocks its thread. If the set is shared
// with the runtime's poller, where it is a single descriptor, a goroutine can sleep on it without blocking a thread.
type epollSet struct {
	fd   int // -1: not open
	file *os.File
	conn syscall.RawConn
}

func (s *epollSet) open() (err error) {
	if s.fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// share adds the set to the runtime's poller.
func (s *epollSet) share() (err error) {
	_ = unix.SetNonblock(s.fd, true) // makes os.NewFile use the runtime's poller
	s.file = os.NewFile(uintptr(s.fd), "epoll")
	s.conn, err = s.file.SyscallConn()
	return err
}

// add makes the set readable while fd is readable.
func (s *epollSet) add(fd int) error { return s.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN) }

// addEdges makes the set readable each time that fd becomes readable or, for an eventfd, is written to (EPOLLET).
func (s *epollSet) addEdges(fd int) error {
	return s.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLET)
}

func (s *epollSet) remove(fd int) { _ = s.control(unix.EPOLL_CTL_DEL, fd, 0) }

// mute keeps fd in the set, but ignores its events.
func (s *epollSet) mute(fd int) { _ = s.control(unix.EPOLL_CTL_MOD, fd, 0) }

// unmute ends mute. If fd is readable, the set becomes readable.
func (s *epollSet) unmute(fd int) { _ = s.control(unix.EPOLL_CTL_MOD, fd, unix.EPOLLIN) }

func (s *epollSet) control(operation, fd int, events uint32) error {
	return unix.EpollCtl(s.fd, operation, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}

func (s *epollSet) close() {
	switch {
	case s.file != nil:
		_ = s.file.Close()
	case s.fd >= 0:
		_ = unix.Close(s.fd)
	}
}
