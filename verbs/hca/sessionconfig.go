// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/capability"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
)

// SessionConfig has a session's limits and privileges, and configures how its program and the card share memory and
// wake each other. The zero value is for a program in this process.
type SessionConfig struct {
	Limits Limits
	// Quota limits this session together with others; nil for none.
	Quota *quota.Quota
	// Process identifies the program's process, for devices that keep state per process; nil if unknown. It is
	// comparable.
	Process any
	// Sharer identifies the programs that may share XRC domains, by the inode of a file that each has open, and a
	// worker's time: those with an equal Sharer. nil stands for the programs of this process.
	Sharer any
	// Privileged is called for each request that sets a Q_Key with the high bit, and reports whether the program is
	// allowed to. If nil, the calling thread needs CAP_NET_RAW.
	Privileged func() bool
	// BindService is called for each bind of a connection id to a privileged port
	// (net.ipv4.ip_unprivileged_port_start), and reports whether the program is allowed to. If nil, Privileged decides,
	// and if that is nil too, the calling thread needs CAP_NET_BIND_SERVICE.
	BindService func() bool
	// Block runs, in a goroutine, a system call that the program can block for any length of time. Block itself must
	// not block. If nil, each such call has its own goroutine.
	Block func(call func())
	// Memory allocates queues and AllocMR's regions; nil for Go memory.
	Memory Memory
	// Wake wakes the waiters for a CQ (ring.ArmedWait), by the CQ's EventID (CreateCQRequest). The engine calls it
	// between packets, so it must not block. If nil, the card sends to the grant's Events channel instead.
	Wake func(eventID uint64)
	// Forget reports that the CQ of an EventID is destroyed, so no goroutine waits for its event any more. It is called
	// with the card's lock, so it must not block. May be nil.
	Forget func(eventID uint64)
	// Calls is an eventfd, which the card watches and does not read until the session is closed: each write is a Wake
	// by the program. 0 for none.
	Calls int
	// Observe receives the events of the session's objects that the program receives by GetAsyncEvent, and the queue
	// pairs that the card has moved to SQE or ERR. It is called with the card's lock, so it must not block. Noticed
	// announces that ReportNoticed has events to report; the engine calls it between packets, so it must not block
	// either. Both may be nil.
	Observe func(ObjectEvent)
	Noticed func()
}

// setDefaults sets defaults, and rejects invalid limits.
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
			return fmt.Errorf("%w: a limit of %d objects; it must be at least 0, where 0 stands for the card's limit", verbs.ErrInvalid, *limit.asked)
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
	// Alloc returns zeroed memory, aligned to 128 bytes, and counts it in the session's Quota.
	Alloc(size int) ([]byte, error)
	// Free frees memory from Alloc. The card does not use it any more. It must not block.
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

// mayPrivileged reports whether the program is allowed to set a Q_Key with the high bit.
func (c *SessionConfig) mayPrivileged() bool {
	if c.Privileged != nil {
		return c.Privileged()
	}
	return capability.NetRaw.Held()
}

// privilege names the privilege for mayPrivileged, in errors.
func (c *SessionConfig) privilege() string {
	if c.Privileged != nil {
		return "a privilege that the session lacks: with the service, root or its privileged group"
	}
	return "CAP_NET_RAW"
}

// mayBindService reports whether the program is allowed to bind a connection id to a privileged port.
func (c *SessionConfig) mayBindService() bool {
	switch {
	case c.BindService != nil:
		return c.BindService()
	case c.Privileged != nil:
		return c.Privileged()
	}
	return capability.NetBindService.Held()
}

// bindPrivilege names the privilege for mayBindService, in errors.
func (c *SessionConfig) bindPrivilege() string {
	if c.BindService != nil || c.Privileged != nil {
		return "a privilege that the session lacks: with the service, root"
	}
	return capability.NetBindService.String()
}
