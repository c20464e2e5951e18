package datapath

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper waits until one of several descriptors is readable, or for a wake-up. The descriptors
// are in an epoll set, which is a single descriptor to the runtime's poller: a goroutine that
// sleeps holds no thread.
//
// The descriptors are in the set only during a sleep, because each frame of a watched socket
// costs the kernel a wake-up.
type sleeper struct {
	set         *os.File
	setFD       int
	conn        syscall.RawConn
	wakeFD      int
	descriptors []int

	closing sync.RWMutex // read-locked by wake, locked by close
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
	_ = unix.SetNonblock(s.setFD, true) // makes os.NewFile use the runtime's poller
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

// sleep returns when a descriptor is readable, after wake, or after the timeout; 0 means none.
func (s *sleeper) sleep(timeout time.Duration) {
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	_ = s.set.SetReadDeadline(deadline)
	for _, fd := range s.descriptors {
		_ = s.watch(fd) // EEXIST if the end of the last sleep could not remove it
	}
	// The caller looks for work after any return, also after an error.
	_ = s.conn.Read(s.ready)
	for _, fd := range s.descriptors {
		_ = unix.EpollCtl(s.setFD, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// ready polls the set without waiting. If it returns false, the runtime waits for the set.
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

// wake ends the present sleep, or the next one. Any goroutine may call it, also after close.
func (s *sleeper) wake() {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return
	}
	one := [8]byte{1} // EAGAIN means that the counter is full: a wake-up is pending already
	_, _ = unix.Write(s.wakeFD, one[:])
}

func (s *sleeper) close() {
	s.closing.Lock()
	defer s.closing.Unlock()
	s.closed = true
	_ = s.set.Close()
	_ = unix.Close(s.wakeFD)
}
