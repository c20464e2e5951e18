// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// descriptors is a sleeper for links with descriptors, and for workers that other processes call.
//
//	the link's descriptors, alarm ──► frames ──► the leader (leader.go)
//	                                    │ muted while there is a leader
//	                                    ▼
//	              wake, grace, calls ─► all ────► the worker
//
// frames and all are epoll sets, and all contains frames. A frame wakes either the worker or the leader. A switch
// between them takes one system call and no wake-up (watch.go).
type descriptors struct {
	frames, all epollSet
	wakeFD      int
	alarmFD     int
	graceFD     int
	callers     callers
	mu          sync.Mutex // guards the fields below and callers; wake and close hold it too
	list        []int      // the link's descriptors
	alone       bool       // there is never a leader, and the worker sleeps in epoll_wait(2)
	grace       grace
	watched     bool // the descriptors of list are in frames
	muted       bool // frames is muted in all
	led         bool // there is a leader
	closed      bool
}

func newDescriptors(c Config, alarmFD int) (s *descriptors, err error) {
	s = &descriptors{list: c.Descriptors, wakeFD: -1, alarmFD: alarmFD, graceFD: -1, alone: c.Alone, callers: callers{byFD: map[int]func(){}}}
	s.frames.fd, s.all.fd = -1, -1
	for _, step := range []func() error{s.openSets, s.openWake, s.openGrace, s.connect} {
		if err := step(); err != nil {
			s.close()
			return nil, fmt.Errorf("create the worker's epoll sets: %w", err)
		}
	}
	return s, nil
}

func (s *descriptors) openGrace() error {
	timer, err := newKernelTimer()
	s.grace.timer, s.graceFD = timer, timer.fd
	return err
}

func (s *descriptors) openSets() error {
	for _, set := range []*epollSet{&s.frames, &s.all} {
		if err := set.open(); err != nil {
			return err
		}
		if s.alone {
			continue
		}
		if err := set.share(); err != nil {
			return err
		}
	}
	return nil
}

func (s *descriptors) openWake() (err error) {
	if s.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	return nil
}

func (s *descriptors) connect() error {
	if err := s.frames.add(s.alarmFD); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	for _, fd := range []int{s.frames.fd, s.wakeFD, s.graceFD} {
		if err := s.all.add(fd); err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
	}
	return nil
}

// sleep implements sleeper.
func (s *descriptors) sleep(timeout time.Duration) {
	s.attend()
	if s.alone {
		for most := milliseconds(timeout); !s.look(most) && most < 0; {
		}
		return
	}
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	_ = s.all.file.SetReadDeadline(deadline)
	_ = s.all.conn.Read(s.ready)
}

// milliseconds converts a timeout for epoll_wait(2): 0, which means no timeout, to -1.
func milliseconds(timeout time.Duration) int {
	if timeout == 0 {
		return -1
	}
	return int((timeout + time.Millisecond - 1) / time.Millisecond)
}

// ready polls the set without blocking. If it returns false, the runtime waits until the set is readable.
func (s *descriptors) ready(uintptr) (awake bool) { return s.look(0) }

// lead implements sleeper.
func (s *descriptors) lead(rounds func(uintptr) bool) (again bool) {
	err := s.frames.conn.Read(rounds)
	if again = errors.Is(err, os.ErrDeadlineExceeded); again {
		_ = s.frames.file.SetReadDeadline(time.Time{}) // clear the deadline that wakeLeader has set
	}
	return again
}

// wakeLeader implements sleeper.
func (s *descriptors) wakeLeader() { _ = s.frames.file.SetReadDeadline(time.Unix(1, 0)) }

// arrived implements sleeper. It is used with in-memory links if Config.Alone is set.
func (s *descriptors) arrived() { s.wake() }

// takeCalls implements sleeper.
func (s *descriptors) takeCalls() {
	if s.callers.there.Load() {
		s.look(0)
	}
}

// look waits for events for at most most milliseconds (-1: no limit) and handles them. It reports whether there may be
// work.
func (s *descriptors) look(most int) (awake bool) {
	var events [8]unix.EpollEvent
	n, err := unix.EpollWait(s.all.fd, events[:], most)
	for _, event := range events[:max(n, 0)] {
		switch fd := int(event.Fd); fd {
		case s.graceFD:
			s.endGrace()
			continue
		case s.wakeFD:
			drain(fd)
		case s.frames.fd:
		default:
			s.hear(fd)
		}
		awake = true
	}
	return awake || err != nil
}

// drain reads an eventfd or a timerfd, so that it is not readable any more.
func drain(fd int) {
	var count [8]byte
	_, _ = unix.Read(fd, count[:])
}

// wake implements sleeper.
func (s *descriptors) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	one := [8]byte{1}
	_, _ = unix.Write(s.wakeFD, one[:]) // EAGAIN: the counter is full, so a wake-up is already pending
}

// close implements sleeper.
func (s *descriptors) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.all.close()
	s.frames.close()
	for _, fd := range []int{s.wakeFD, s.graceFD} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
