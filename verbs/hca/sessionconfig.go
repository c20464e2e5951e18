package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
)

// SessionConfig says what a session may have, and how its program and the card reach each other.
// The zero value is a program's in this process.
type SessionConfig struct {
	Limits Limits
	// Privileged says, at each request, whether a Q_Key with the high bit may be set. Without
	// it, that takes CAP_NET_RAW of the calling thread.
	Privileged func() bool
	// Memory is where queues and AllocMR's regions lie: Go memory unless set.
	Memory Memory
	// Wake tells the program that an armed CQ has its event, by the number that the program gave
	// to it (CreateCQRequest.EventID). It runs between packets, and must not wait. Unless it is
	// set, the channel of the grant is sent to.
	Wake func(eventID uint64)
}

// Limits are how many objects a session may have at once. 0 stands for the card's own limit.
type Limits struct {
	PDs, MRs, CQs, QPs, AHs int
	Memberships             int
	Attachments             int    // of queue pairs to groups
	Memory                  uint64 // bytes of queues and of regions that AllocMR makes
}

// The limits of a card. They are what QueryDevice tells where a session has no smaller ones.
const (
	maxQP          = 16384
	maxQPWR        = 16384 // requests a queue
	maxCQ          = 16384
	maxCQE         = 1 << 18
	maxMR          = 1 << 16
	maxPD          = 1 << 14
	maxAH          = 1 << 17
	maxMRSize      = 1 << 30 // bytes
	maxInline      = 512     // bytes
	maxMemberships = 1 << 16
	maxMemory      = 1 << 40 // bytes: what the machine has ends before
)

func (c *SessionConfig) setDefaults() {
	l := &c.Limits
	for _, limit := range []struct {
		asked *int
		most  int
	}{
		{&l.PDs, maxPD}, {&l.MRs, maxMR}, {&l.CQs, maxCQ}, {&l.QPs, maxQP}, {&l.AHs, maxAH},
		{&l.Memberships, maxMemberships}, {&l.Attachments, groupLimits.Attachments},
	} {
		if *limit.asked <= 0 || *limit.asked > limit.most {
			*limit.asked = limit.most
		}
	}
	if l.Memory == 0 {
		l.Memory = maxMemory
	}
	if c.Memory == nil {
		c.Memory = goMemory{}
	}
}

// Memory is memory that a session's program and the card both reach.
type Memory interface {
	// Alloc gives zeroed memory, aligned to 128 bytes.
	Alloc(size int) ([]byte, error)
	// Free takes memory back that Alloc has given: the card does not use it any more.
	Free(memory []byte)
}

// goMemory is the memory of a program in this process, which may use it longer than the card.
type goMemory struct{}

func (goMemory) Alloc(size int) ([]byte, error) { return ring.Alloc(size), nil }
func (goMemory) Free([]byte)                    {}

// alloc takes memory as far as the session's limit allows. It takes no lock: much memory takes
// long to zero.
func (s *Session) alloc(size int) ([]byte, error) {
	if most := s.config.Limits.Memory; s.memory.Add(uint64(size)) > most {
		now := s.memory.Add(-uint64(size))
		return nil, fmt.Errorf("%w: %d bytes of memory more; the session has %d of %d", verbs.ErrLimit, size, now, most)
	}
	piece, err := s.config.Memory.Alloc(size)
	if err != nil {
		s.memory.Add(-uint64(size))
		return nil, hostError(err)
	}
	return piece, nil
}

// release gives memory back that alloc has given. The engine does not use it any more.
func (s *Session) release(pieces ...[]byte) {
	for _, piece := range pieces {
		if piece != nil {
			s.memory.Add(-uint64(len(piece)))
			s.config.Memory.Free(piece)
		}
	}
}
