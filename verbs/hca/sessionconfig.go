//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/capability"
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

// mayPrivileged reports whether the program may set a Q_Key with the high bit.
func (c *SessionConfig) mayPrivileged() bool {
	if c.Privileged != nil {
		return c.Privileged()
	}
	return capability.NetRaw.Held()
}

// privilege returns what mayPrivileged requires, for errors.
func (c *SessionConfig) privilege() string {
	if c.Privileged != nil {
		return "a privilege that the session was not given: over the service root, or its privileged group"
	}
	return "CAP_NET_RAW"
}

// mayBindService reports whether the program may bind a connection id to a port that needs a privilege.
func (c *SessionConfig) mayBindService() bool {
	switch {
	case c.BindService != nil:
		return c.BindService()
	case c.Privileged != nil:
		return c.Privileged()
	}
	return capability.NetBindService.Held()
}

// bindPrivilege returns what mayBindService requires, for errors.
func (c *SessionConfig) bindPrivilege() string {
	if c.BindService != nil || c.Privileged != nil {
		return "a privilege that the session was not given: over the service root"
	}
	return capability.NetBindService.String()
}
