package server

import (
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// signals is the daemon's end of the socket pair by which client and card wake each other. It is no
// pipe: who reads from a pipe into memory that is not there yet, or puts such pages into one, holds up
// the other side, whatever that side's flags say.
type signals struct {
	fd     int // the runtime's poller does not know it: a call of the client is to wake the card, and nobody else
	client int // the client's end, until it has it, then -1

	mu   sync.Mutex
	owed []uint64        // EventIDs: the socket was full
	kept map[uint64]bool // those in owed: each is there once
	all  sync.WaitGroup
}

func newSignals() (*signals, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	return &signals{fd: ends[0], client: ends[1], kept: map[uint64]bool{}}, nil
}

// handedOver closes the client's end.
func (s *signals) handedOver() {
	if s.client >= 0 {
		_ = unix.Close(s.client)
		s.client = -1
	}
}

// close ends deliver. The session has been closed: the card neither hears calls nor reports events any more.
func (s *signals) close() {
	s.handedOver()
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // whoever waits for room
	s.all.Wait()
	_ = unix.Close(s.fd)
}

// tell is hca.SessionConfig.Wake: it sends an EventID, without ever waiting for the client. Once
// something is owed, what comes later is too.
func (s *signals) tell(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owed) > 0 {
		s.owe(id)
		return
	}
	var record [8]byte
	binary.LittleEndian.PutUint64(record[:], id)
	if sendNow(s.fd, record[:]) == unix.EAGAIN {
		s.owe(id)
		s.all.Go(s.deliver)
	}
}

// owe keeps an event, once a CQ: a second one would say nothing new.
func (s *signals) owe(id uint64) {
	if !s.kept[id] {
		s.kept[id] = true
		s.owed = append(s.owed, id)
	}
}

// deliver sends what is owed, and waits while the socket is full. Then it holds a thread.
func (s *signals) deliver() {
	for {
		id, some := s.oldest()
		if !some {
			return
		}
		var record [8]byte
		binary.LittleEndian.PutUint64(record[:], id)
		switch sendNow(s.fd, record[:]) {
		case 0:
			s.paid()
		case unix.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}, -1)
		default:
			return // closed, here or there; nothing more is sent, since something is owed
		}
	}
}

func (s *signals) oldest() (id uint64, some bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owed) == 0 {
		return 0, false
	}
	return s.owed[0], true
}

// paid forgets the event that has been delivered.
func (s *signals) paid() {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, s.owed[0])
	s.owed = s.owed[1:]
}
