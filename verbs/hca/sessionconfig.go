//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
)

// SessionConfig is a session's limits and privileges, and how its program and the card share memory
// and wake each other. The zero value suits a program in this process.
type SessionConfig struct {
	Limits Limits
	// Quota limits this session together with others; nil for none.
	Quota *quota.Quota
	// Process is the program's process, for devices that are another one for each; nil if it is not known. It is comparable.
	Process any
	// Sharer is who the program is, of those who may share XRC domains and a worker's time with it: sessions of which it is equal do, by
	// the inode of a file that each of them has open. nil stands for the programs of this process.
	Sharer any
	// Privileged is called by each request that sets a Q_Key with the high bit, and says whether the
	// program may. If nil, the calling thread needs CAP_NET_RAW for that.
	Privileged func() bool
	// BindService is called by each bind of a connection id to a port that needs a privilege
	// (net.ipv4.ip_unprivileged_port_start), and says whether the program may. If nil, Privileged says so, and if that
	// is nil too, the calling thread needs CAP_NET_BIND_SERVICE.
	BindService func() bool
	// Block runs, in a goroutine, a system call that the program can make block for as long as it likes. It must not wait. If
	// nil, such calls have a goroutine each.
	Block func(call func())
	// Memory allocates queues and AllocMR's regions; Go memory if nil.
	Memory Memory
	// Wake wakes those who wait on a CQ (ring.ArmedWait), by the CQ's EventID (CreateCQRequest). The
	// engine calls it between packets, so it must not wait. If nil, the card sends to the grant's
	// Events channel instead.
	Wake func(eventID uint64)
	// Forget says that the CQ of an EventID is destroyed, so that nobody waits for its event any more. It is
	// called with the card's lock, so it must not wait. May be nil.
	Forget func(eventID uint64)
	// Calls is an eventfd, which the card watches and does not read until the session is closed: each write is a
	// Wake by the program. 0 for none.
	Calls int
	// Observe hears of the session's objects what its program hears by GetAsyncEvent, and of queue pairs
	// that the card has moved to SQE or ERR. It is called with the card's lock, so it must not wait.
	// Noticed says that there is something that ReportNoticed will tell; the engine calls it between
	// packets, so it must not wait either. Both are nil if nobody wants to know.
	Observe func(ObjectEvent)
	Noticed func()
}

// ObjectEvent is something that has happened to an object.
type ObjectEvent struct {
	Kind   ObjectKind
	Number uint32 // a QP's; the handle of a CQ or an SRQ
	Type   verbs.EventType
	Moved  bool // the card has moved the queue pair to State; there is no Type
	State  verbs.QPState
}

// Limits are how many objects a session may have at once. 0 stands for the card's limit.
type Limits = quota.Limits

// The limits of a card. QueryDevice gives them unless the session has smaller ones.
const (
	maxQP          = 16384
	maxQPWR        = 16384 // requests a queue
	maxSRQ         = 16384
	maxXRCD        = 1 << 12
	maxSRQWR       = 16384 // receives an SRQ
	maxSRQQueues   = 32    // queues of one SRQ, from resizes, that have receives: a packet may look at all
	maxCQ          = 16384
	maxCQE         = 1 << 18
	maxMR          = 1 << 16
	maxCompChannel = 1024 // as many event channels
	maxPD          = 1 << 14
	maxAH          = 1 << 17
	maxMRSize      = 1 << 38 // bytes: as far as a ring.DMAAddr reaches
	maxAlloc       = 1 << 30 // bytes of one piece of memory that the card makes
	maxInline      = 512     // bytes
	maxMemberships = 1 << 16
	maxIDs         = 1 << 16
	maxMemory      = 1 << 40 // bytes: no limit in practice
)

// setDefaults fills in what is not set, and refuses limits that cannot be.
func (c *SessionConfig) setDefaults() error {
	l := &c.Limits
	for _, limit := range []struct {
		asked *int
		most  int
	}{
		{&l.PDs, maxPD}, {&l.MRs, maxMR}, {&l.CQs, maxCQ}, {&l.QPs, maxQP}, {&l.AHs, maxAH}, {&l.SRQs, maxSRQ}, {&l.XRCDs, maxXRCD},
		{&l.CompChannels, maxCompChannel},
		{&l.EventChannels, maxCompChannel}, {&l.IDs, maxIDs},
		{&l.Memberships, maxMemberships}, {&l.Attachments, groupLimits.Attachments},
	} {
		if *limit.asked < 0 {
			return fmt.Errorf("%w: a limit of %d objects; give 0 or more, where 0 stands for the card's limit", verbs.ErrInvalid, *limit.asked)
		}
		if *limit.asked == 0 || *limit.asked > limit.most {
			*limit.asked = limit.most
		}
	}
	l.QPs = min(l.QPs, c.Quota.Most(maxQP))
	if l.Memory == 0 {
		l.Memory = maxMemory
	}
	if c.Memory == nil {
		c.Memory = goMemory{c.Quota}
	}
	return nil
}

// Memory allocates memory that both a session's program and the card can access.
type Memory interface {
	// Alloc gives zeroed memory, aligned to 128 bytes, and counts it in the session's Quota.
	Alloc(size int) ([]byte, error)
	// Free frees memory from Alloc. The card does not use it any more. It must not wait.
	Free(memory []byte)
}

// goMemory is memory for a program in this process. The garbage collector frees it, since the program
// may use it longer than the card.
type goMemory struct{ quota *quota.Quota }

func (m goMemory) Alloc(size int) ([]byte, error) {
	if err := m.quota.TakeMemory(uint64(size)); err != nil {
		return nil, err
	}
	return ring.Alloc(size), nil
}

func (m goMemory) Free(memory []byte) { m.quota.GiveMemory(uint64(len(memory))) }

// alloc allocates memory within the session's limit. It holds no lock, since large memory takes long
// to zero.
func (s *Session) alloc(size int) ([]byte, error) {
	if size == 0 {
		return nil, nil // a region of no bytes
	}
	if most := s.config.Limits.Memory; s.memory.Add(uint64(size)) > most {
		now := s.memory.Add(-uint64(size))
		return nil, fmt.Errorf("%w: %d bytes of memory; the session uses %d of %d", verbs.ErrLimit, size, now, most)
	}
	piece, err := s.config.Memory.Alloc(size)
	if err != nil {
		s.memory.Add(-uint64(size))
		return nil, network.HostError(err)
	}
	return piece, nil
}

// release frees memory from alloc. The engine does not use it any more.
func (s *Session) release(pieces ...[]byte) {
	for _, piece := range pieces {
		if piece != nil {
			s.memory.Add(-uint64(len(piece)))
			s.config.Memory.Free(piece)
		}
	}
}
