package server

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// signals is the daemon's end of the socket pair by which client and card wake each other. It is no
// pipe: who reads from a pipe into memory that is not there yet, or puts such pages into one, holds up
// the other side, whatever that side's flags say.
type signals struct {
	fd     int
	file   *os.File // of the same descriptor
	client int      // the client's end, until it has it, then -1

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
	return &signals{fd: ends[0], file: os.NewFile(uintptr(ends[0]), "signals"), client: ends[1], kept: map[uint64]bool{}}, nil
}

// handedOver closes the client's end.
func (s *signals) handedOver() {
	if s.client >= 0 {
		_ = unix.Close(s.client)
		s.client = -1
	}
}

// close ends listen and deliver. The session has been closed: the card reports no events any more.
func (s *signals) close() {
	s.handedOver()
	_ = s.file.Close()
	s.all.Wait()
}

// listen calls wake whenever the client asks for it, until close, or until the client has closed its
// end.
func (s *signals) listen(wake func()) {
	var bytes [64]byte
	for {
		if n, err := s.file.Read(bytes[:]); n == 0 || err != nil {
			return
		}
		wake()
	}
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

// deliver sends what is owed, and waits while the socket is full.
func (s *signals) deliver() {
	for {
		records := s.oldest()
		if len(records) == 0 {
			return
		}
		if _, err := s.file.Write(records); err != nil {
			return // closed, here or there; nothing more is sent, since something is owed
		}
		s.paid(len(records) / 8)
	}
}

// atOnce is how many events deliver sends in one piece.
const atOnce = 512

func (s *signals) oldest() (records []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.owed[:min(len(s.owed), atOnce)] {
		records = binary.LittleEndian.AppendUint64(records, id)
	}
	return records
}

// paid forgets events that have been delivered.
func (s *signals) paid(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.owed[:n] {
		delete(s.kept, id)
	}
	s.owed = s.owed[n:]
}
