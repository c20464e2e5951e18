// SPDX-License-Identifier: Apache-2.0

package server

import (
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// signals wake client and card. The card wakes the client by a socket pair, in which the
// client cannot send. The client wakes the card by an eventfd, which the card does not read. The first is not a
// pipe: a client that reads from a pipe into absent memory, or puts such pages into one, blocks
// the other side, even if that side's end does not block. The second is not a socket: the card could block
// when it receives a message that a client sends there
// (peer.RefuseRights).
type signals struct {
	fd     int // of the socket pair
	calls  int // the eventfd; it is not in the runtime's poller: a call must wake only the card
	client int // the client's end of the socket pair, until it has it, then -1

	mu   sync.Mutex
	owed list.List                // of EventIDs: the socket was full
	kept map[uint64]*list.Element // those in owed: each is there once
	all  sync.WaitGroup

	delivering bool // deliver is running: later events are owed too
}

func newSignals() (*signals, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("socket pair: %w", err)
	}
	_ = unix.Shutdown(ends[0], unix.SHUT_RD)
	calls, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(ends[0]), unix.Close(ends[1]))
	}
	return &signals{fd: ends[0], calls: calls, client: ends[1], kept: map[uint64]*list.Element{}}, nil
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
	_ = unix.Shutdown(s.fd, unix.SHUT_RDWR) // wakes deliver
	s.all.Wait()
	_ = unix.Close(s.fd)
	_ = unix.Close(s.calls)
}

// notify is hca.SessionConfig.Wake: it sends an EventID, without ever waiting for the client. While an
// event is owed, later ones are too.
func (s *signals) notify(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivering {
		s.owe(id)
		return
	}
	if send(s.fd, id) == unix.EAGAIN {
		s.owe(id)
		s.delivering = true
		s.all.Go(s.deliver)
	}
}

// owe keeps an event, once a CQ: a second one would say nothing new.
func (s *signals) owe(id uint64) {
	if s.kept[id] == nil {
		s.kept[id] = s.owed.PushBack(id)
	}
}

// forget is hca.SessionConfig.Forget: the event of a CQ that is destroyed is not owed any more.
func (s *signals) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(id)
}

func (s *signals) drop(id uint64) {
	if place := s.kept[id]; place != nil {
		s.owed.Remove(place)
		delete(s.kept, id)
	}
}

// deliver sends the owed events, and waits while the socket is full. The wait occupies no thread: meanwhile the runtime's poller
// has a descriptor of the socket. It has none otherwise, since each read by the client would wake it.
func (s *signals) deliver() {
	fd, err := unix.FcntlInt(uintptr(s.fd), unix.F_DUPFD_CLOEXEC, 0)
	for err != nil && s.pay() == unix.EAGAIN { // descriptors have run out
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLOUT}}, -1)
	}
	if err != nil {
		return
	}
	socket := os.NewFile(uintptr(fd), "signals")
	defer socket.Close()
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Write(func(uintptr) (done bool) { return s.pay() != unix.EAGAIN })
	}
}

// pay sends owed events while there is room. After another error the socket is closed at either end, and
// no more events are sent. An event is owed until it has been sent, both under the lock: otherwise an event of the same ID that comes in
// between would be dropped with it.
func (s *signals) pay() unix.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	for first := s.owed.Front(); first != nil; first = s.owed.Front() {
		id := first.Value.(uint64)
		if err := send(s.fd, id); err != 0 {
			return err
		}
		s.drop(id)
	}
	s.delivering = false
	return 0
}

// send sends an EventID without waiting.
func send(fd int, id uint64) unix.Errno {
	var record [8]byte
	binary.LittleEndian.PutUint64(record[:], id)
	return sendNow(fd, record[:])
}
