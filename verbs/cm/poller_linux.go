// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"os"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// poller is an epoll(7) instance of the channels of several devices. Its descriptor is readable when one of theirs is,
// and Go's runtime can wait for it.
type poller struct {
	file *os.File
	fd   int
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		err = unix.SetNonblock(fd, true) // required by the runtime's poller
	}
	if err != nil {
		return nil, fmt.Errorf("%w: epoll: %w", verbs.ErrHost, err)
	}
	return &poller{os.NewFile(uintptr(fd), "event channel"), fd}, nil
}

// add makes the poller watch a file, until the file is closed.
func (p *poller) add(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("%w: epoll: %w", verbs.ErrHost, err)
	}
	return nil
}

// wait returns when a file is readable, at the file's deadline, or when it is closed.
func (p *poller) wait() {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		var events [1]unix.EpollEvent
		n, err := unix.EpollWait(int(fd), events[:], 0)
		return n != 0 || err != nil && err != unix.EINTR
	})
}
