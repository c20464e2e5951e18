// SPDX-License-Identifier: Apache-2.0

//go:build linux

package quota

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
)

// Quota limits the resources that several sessions have together, on any cards: for example the sessions of one user of
// a service. Memory is counted where it is allocated (hca.SessionConfig.Memory), since pages may stay in use when their
// contents are freed. A nil Quota has no limits.
type Quota struct {
	owner string
	pool  *Pool

	mu          sync.Mutex
	limits      Limits
	used        Limits
	descriptors uint64 // part of the pool's
	mappings    uint64 // part of the pool's
	hops        unresolved
}

// New creates a quota. A limit of 0 is none. The owner's name is for errors. Everything is also counted in the pool,
// which may be nil.
func New(owner string, limits Limits, pool *Pool) *Quota {
	return &Quota{owner: owner, limits: limits, pool: pool}
}

// SetLimits changes the limits. Existing use stays, even beyond them.
func (q *Quota) SetLimits(limits Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = limits
}

// Limits returns the limits.
func (q *Quota) Limits() Limits {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limits
}

// Used returns the current use.
func (q *Quota) Used() Limits {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// Limits has the maximum numbers of a session's objects. 0 stands for the card's limit.
type Limits struct {
	PDs, MRs, CQs, QPs, AHs int
	SRQs                    int
	XRCDs                   int // handles of XRC domains
	CompChannels            int // each has descriptors of the card's process
	Memberships             int
	Attachments             int    // of queue pairs to groups
	IDs                     int    // of connection management
	EventChannels           int    // of ids; each has two descriptors of the card's process
	Memory                  uint64 // bytes of queues and of AllocMR's regions
}

// Kind is a kind of object: its field of Limits, and the number of descriptors that each object uses.
type Kind struct {
	field       func(*Limits) *int
	descriptors uint64
}

// The kinds.
var (
	PDs           = Kind{field: func(l *Limits) *int { return &l.PDs }}
	MRs           = Kind{field: func(l *Limits) *int { return &l.MRs }}
	CQs           = Kind{field: func(l *Limits) *int { return &l.CQs }}
	QPs           = Kind{field: func(l *Limits) *int { return &l.QPs }}
	AHs           = Kind{field: func(l *Limits) *int { return &l.AHs }}
	SRQs          = Kind{field: func(l *Limits) *int { return &l.SRQs }}
	XRCDs         = Kind{field: func(l *Limits) *int { return &l.XRCDs }}
	CompChannels  = Kind{func(l *Limits) *int { return &l.CompChannels }, 1}
	Memberships   = Kind{func(l *Limits) *int { return &l.Memberships }, 1} // for some groups
	Attachments   = Kind{field: func(l *Limits) *int { return &l.Attachments }}
	IDs           = Kind{field: func(l *Limits) *int { return &l.IDs }}
	EventChannels = Kind{func(l *Limits) *int { return &l.EventChannels }, 2}
)

// In returns the kind's limit.
func (k Kind) In(l *Limits) *int { return k.field(l) }

// Take acquires an object of a kind.
func (q *Quota) Take(of Kind, noun string) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	used := of.field(&q.used)
	if limit := *of.field(&q.limits); limit > 0 && *used >= limit {
		return fmt.Errorf("%w: %s has %d %ss, in all its programs, and may have %d; close some", verbs.ErrLimit, q.owner, *used, noun, limit)
	}
	if err := q.takeDescriptors(of.descriptors); err != nil {
		return err
	}
	*used++
	return nil
}

// Give returns objects of a kind.
func (q *Quota) Give(of Kind, n int) {
	if q == nil || n == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	*of.field(&q.used) -= n
	q.giveDescriptors(of.descriptors * uint64(n))
}

// Most returns the part of a card's total that the owner can have, without the reserve for others.
func (q *Quota) Most(all int) int {
	if q == nil {
		return all // a program in this process
	}
	return all - all/reserveParts
}

// MostMemory returns the part of a card's total memory for registration that the owner can have.
func (q *Quota) MostMemory(all uint64) uint64 {
	if q == nil {
		return all
	}
	if most := q.Limits().Memory; most > 0 {
		return min(most, all)
	}
	return all
}

// Admit returns an error unless the owner can get one more unit of a shared resource of the card, given its objects of
// the kind.
func (q *Quota) Admit(of Kind, s Shared) error {
	if q == nil {
		return nil // a program in this process
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return s.admit(q.owner, uint64(*of.field(&q.used)), 1)
}

// AdmitBeside is Admit for a resource that the quota does not count; own is the owner's number of units.
func (q *Quota) AdmitBeside(own uint64, s Shared) error {
	if q == nil {
		return nil // a program in this process
	}
	return s.admit(q.owner, own, 1)
}

// TakeDescriptors acquires descriptors of the process, for a connection. It returns ErrLimit if too few are left.
func (q *Quota) TakeDescriptors(n uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.takeDescriptors(n)
}

// GiveDescriptors returns descriptors.
func (q *Quota) GiveDescriptors(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveDescriptors(n)
}

// TakeMappings acquires mappings of the process, for regions of programs' own memory. It returns ErrLimit if too few
// are left.
func (q *Quota) TakeMappings(n uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.pool.take(poolMappings, q.owner, q.mappings, n); err != nil {
		return err
	}
	q.mappings += n
	return nil
}

// GiveMappings returns mappings.
func (q *Quota) GiveMappings(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mappings -= n
	q.pool.give(poolMappings, n)
}

// takeDescriptors is TakeDescriptors for a caller that holds mu.
func (q *Quota) takeDescriptors(n uint64) error {
	if n == 0 {
		return nil
	}
	if err := q.pool.take(poolDescriptors, q.owner, q.descriptors, n); err != nil {
		return err
	}
	q.descriptors += n
	return nil
}

// giveDescriptors is GiveDescriptors for a caller that holds mu.
func (q *Quota) giveDescriptors(n uint64) {
	q.descriptors -= n
	q.pool.give(poolDescriptors, n)
}

// TakeMemory acquires bytes, before they are touched. It returns ErrLimit if too few are left.
func (q *Quota) TakeMemory(size uint64) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if most := q.limits.Memory; most > 0 && (q.used.Memory >= most || size > most-q.used.Memory) {
		return fmt.Errorf("%w: %d bytes of memory requested; %s has %d, in all its programs, and may have %d: memory of the service's limits", verbs.ErrLimit, size, q.owner, q.used.Memory, most)
	}
	if err := q.pool.take(poolMemory, q.owner, q.used.Memory, size); err != nil {
		return err
	}
	q.used.Memory += size
	return nil
}

// GiveMemory returns bytes.
func (q *Quota) GiveMemory(size uint64) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used.Memory -= size
	q.pool.give(poolMemory, size)
}
