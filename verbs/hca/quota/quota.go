//go:build linux

package quota

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
)

// Quota limits what several sessions have together, on any cards: those of one user of a service, for
// example. Memory is counted where it is allocated (hca.SessionConfig.Memory), since pages may stay in use
// when what was in them is freed. A nil Quota limits nothing.
type Quota struct {
	owner string
	pool  *Pool

	mu          sync.Mutex
	limits      Limits
	used        Limits
	descriptors uint64 // of the pool's
	mappings    uint64 // likewise
	hops        unresolved
}

// New makes a quota. A limit of 0 is none. The owner's name is for errors. What the owner takes is
// taken from the pool too, which may be nil.
func New(owner string, limits Limits, pool *Pool) *Quota {
	return &Quota{owner: owner, limits: limits, pool: pool}
}

// SetLimits changes the limits. What is there already stays, also beyond them.
func (q *Quota) SetLimits(limits Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = limits
}

// Limits are those that it has.
func (q *Quota) Limits() Limits {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limits
}

// Used is what the sessions have.
func (q *Quota) Used() Limits {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// Limits are how many objects a session may have at once. 0 stands for the card's limit.
type Limits struct {
	PDs, MRs, CQs, QPs, AHs int
	SRQs                    int
	XRCDs                   int // handles of XRC domains
	CompChannels            int // each has descriptors of the card's process
	Memberships             int
	Attachments             int    // of queue pairs to groups
	IDs                     int    // of connection management
	EventChannels           int    // of ids; each has two descriptors of the card's process
	Memory                  uint64 // bytes of queues and of regions that AllocMR makes
}

// Kind is a kind of object: a field of Limits, and how many descriptors of the process one takes.
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
	Memberships   = Kind{func(l *Limits) *int { return &l.Memberships }, 1} // of some groups
	Attachments   = Kind{field: func(l *Limits) *int { return &l.Attachments }}
	IDs           = Kind{field: func(l *Limits) *int { return &l.IDs }}
	EventChannels = Kind{func(l *Limits) *int { return &l.EventChannels }, 2}
)

// In is the kind's limit.
func (k Kind) In(l *Limits) *int { return k.field(l) }

// Take takes an object of a kind.
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

// Give gives objects of a kind back.
func (q *Quota) Give(of Kind, n int) {
	if q == nil || n == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	*of.field(&q.used) -= n
	q.giveDescriptors(of.descriptors * uint64(n))
}

// Most is how much of what a card has for all the owner can have: not what is kept for others.
func (q *Quota) Most(all int) int {
	if q == nil {
		return all // a program in this process
	}
	return all - all/reserveParts
}

// MostMemory is how much of what a card would register the owner can have.
func (q *Quota) MostMemory(all uint64) uint64 {
	if q == nil {
		return all
	}
	if most := q.Limits().Memory; most > 0 {
		return min(most, all)
	}
	return all
}

// Admit says whether the owner, who has so many of a kind, may take one of what a card has for all.
func (q *Quota) Admit(of Kind, s Shared) error {
	if q == nil {
		return nil // a program in this process
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return s.admit(q.owner, uint64(*of.field(&q.used)), 1)
}

// AdmitBeside is Admit for what is no object of a quota, of which the caller knows that the owner has so many.
func (q *Quota) AdmitBeside(own uint64, s Shared) error {
	if q == nil {
		return nil // a program in this process
	}
	return s.admit(q.owner, own, 1)
}

// TakeDescriptors takes descriptors of the process, which a connection has; ErrLimit if there are too few.
func (q *Quota) TakeDescriptors(n uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.takeDescriptors(n)
}

// GiveDescriptors gives descriptors back.
func (q *Quota) GiveDescriptors(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveDescriptors(n)
}

// TakeMappings takes mappings of the process, for regions of memory of programs' own; ErrLimit if there are too few.
func (q *Quota) TakeMappings(n uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.pool.take(poolMappings, q.owner, q.mappings, n); err != nil {
		return err
	}
	q.mappings += n
	return nil
}

// GiveMappings gives mappings back.
func (q *Quota) GiveMappings(n uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mappings -= n
	q.pool.give(poolMappings, n)
}

// takeDescriptors is for who holds mu.
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

// giveDescriptors is for who holds mu.
func (q *Quota) giveDescriptors(n uint64) {
	q.descriptors -= n
	q.pool.give(poolDescriptors, n)
}

// TakeMemory takes bytes, before they are touched; ErrLimit if there are too few.
func (q *Quota) TakeMemory(size uint64) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if most := q.limits.Memory; most > 0 && (q.used.Memory >= most || size > most-q.used.Memory) {
		return fmt.Errorf("%w: %d bytes of memory asked for; %s has %d, in all its programs, and may have %d: memory of the service's limits", verbs.ErrLimit, size, q.owner, q.used.Memory, most)
	}
	if err := q.pool.take(poolMemory, q.owner, q.used.Memory, size); err != nil {
		return err
	}
	q.used.Memory += size
	return nil
}

// GiveMemory gives bytes back.
func (q *Quota) GiveMemory(size uint64) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used.Memory -= size
	q.pool.give(poolMemory, size)
}
