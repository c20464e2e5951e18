package datapath

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper waits for any of several descriptors, or for a wake-up. They are in an
// epoll set of their own, and that is one descriptor to the runtime's poller: the
// goroutine that sleeps holds no thread.
//
// The descriptors are in the set only during a sleep: a socket that somebody
// watches costs the kernel a wake-up for each frame.
type sleeper struct {
	set         *os.File
	setFD       int
	conn        syscall.RawConn
	wakeFD      int
	descriptors []int

	closing sync.RWMutex // held for a wake-up, and wholly by close
	closed  bool
}

func newSleeper(descriptors []int) (s *sleeper, err error) {
	s = &sleeper{descriptors: descriptors}
	if s.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("eventfd for the worker: %w", err)
	}
	if s.setFD, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		_ = unix.Close(s.wakeFD)
		return nil, fmt.Errorf("epoll for the worker: %w", err)
	}
	_ = unix.SetNonblock(s.setFD, true) // tells os.NewFile to use the runtime's poller
	s.set = os.NewFile(uintptr(s.setFD), "epoll")
	if s.conn, err = s.set.SyscallConn(); err == nil {
		err = s.watch(s.wakeFD)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("epoll for the worker: %w", err)
	}
	return s, nil
}

func (s *sleeper) watch(fd int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return unix.EpollCtl(s.setFD, unix.EPOLL_CTL_ADD, fd, &event)
}

// sleep returns when a descriptor is readable, after wake, or at the timeout if there is one.
func (s *sleeper) sleep(timeout time.Duration) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	_ = s.set.SetReadDeadline(deadline)
	for _, fd := range s.descriptors {
		_ = s.watch(fd) // EEXIST after a sleep that could not undo it
	}
	// Whatever ends it is a reason to look, which the caller does.
	_ = s.conn.Read(s.ready)
	for _, fd := range s.descriptors {
		_ = unix.EpollCtl(s.setFD, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// ready asks the set without waiting; false has the runtime wait for it.
func (s *sleeper) ready(uintptr) bool {
	var events [8]unix.EpollEvent
	n, err := unix.EpollWait(s.setFD, events[:], 0)
	for _, event := range events[:max(n, 0)] {
		if event.Fd == int32(s.wakeFD) {
			var count [8]byte
			_, _ = unix.Read(s.wakeFD, count[:])
		}
	}
	return n != 0 || err != nil
}

// wake ends a sleep, or the next one. Any goroutine may call it, also after close.
func (s *sleeper) wake() {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return
	}
	one := [8]byte{1} // EAGAIN means that the counter is full: it is awake
	_, _ = unix.Write(s.wakeFD, one[:])
}

func (s *sleeper) close() {
	s.closing.Lock()
	defer s.closing.Unlock()
	s.closed = true
	_ = s.set.Close()
	_ = unix.Close(s.wakeFD)
}
