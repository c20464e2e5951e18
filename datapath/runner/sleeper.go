package runner

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sleeper is what the worker and the leader sleep on.
//
//	the link's descriptors, alarm ──► frames ──► the leader (leader.go)
//	                                    │ muted for the leader
//	                                    ▼
//	              wake, grace, calls ─► all ────► the worker
//
// So a frame wakes one of the two, and a change of who that is takes one system call and wakes nobody
// (watch.go).
type sleeper struct {
	frames, all epollSet
	wakeFD      int
	alarmFD     int
	mu          sync.Mutex // guards the fields below; wake and close hold it too
	descriptors []int
	callers     callers
	alone       bool // there is no leader, and the worker sleeps in its thread
	grace       grace
	watched     bool // the descriptors are in frames
	muted       bool // frames is muted in all
	led         bool // a leader is there
	closed      bool
}

func newSleeper(c Config, alarmFD int) (s *sleeper, err error) {
	s = &sleeper{
		descriptors: c.Descriptors, wakeFD: -1, alarmFD: alarmFD, grace: grace{fd: -1}, alone: c.Alone,
		callers: callers{byFD: map[int]func(){}},
	}
	s.frames.fd, s.all.fd = -1, -1
	for _, step := range []func() error{s.openSets, s.openWake, s.grace.open, s.connect} {
		if err := step(); err != nil {
			s.close()
			return nil, fmt.Errorf("what the worker sleeps on: %w", err)
		}
	}
	return s, nil
}

func (s *sleeper) openSets() error {
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

func (s *sleeper) openWake() (err error) {
	if s.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	return nil
}

func (s *sleeper) connect() error {
	if err := s.frames.add(s.alarmFD); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	for _, fd := range []int{s.frames.fd, s.wakeFD, s.grace.fd} {
		if err := s.all.add(fd); err != nil {
			return fmt.Errorf("epoll: %w", err)
		}
	}
	return nil
}

// sleep is the worker's. It returns when a frame has come and no leader is there, after a call or wake, or
// after the timeout; 0 means none. The caller looks for work after any return.
func (s *sleeper) sleep(timeout time.Duration) {
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

// milliseconds is a timeout as epoll_wait(2) has it.
func milliseconds(timeout time.Duration) int {
	if timeout == 0 {
		return -1
	}
	return int((timeout + time.Millisecond - 1) / time.Millisecond)
}

// ready polls the set without waiting. If it returns false, the runtime waits for the set.
func (s *sleeper) ready(uintptr) (awake bool) { return s.look(0) }

// look waits for that many milliseconds, -1 for no end, until something is there, and takes it. It says
// whether there may be work.
func (s *sleeper) look(most int) (awake bool) {
	var events [8]unix.EpollEvent
	n, err := unix.EpollWait(s.all.fd, events[:], most)
	for _, event := range events[:max(n, 0)] {
		switch fd := int(event.Fd); fd {
		case s.grace.fd:
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

// drain makes an eventfd or a timer unreadable.
func drain(fd int) {
	var count [8]byte
	_, _ = unix.Read(fd, count[:])
}

// wake ends the worker's present sleep, or the next one. Any goroutine may call it, also after close.
func (s *sleeper) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	one := [8]byte{1} // EAGAIN means that the counter is full: a wake-up is pending already
	_, _ = unix.Write(s.wakeFD, one[:])
}

// close ends the leader's sleep. The worker has ended.
func (s *sleeper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.all.close()
	s.frames.close()
	for _, fd := range []int{s.wakeFD, s.grace.fd} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
