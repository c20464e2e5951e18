package hca

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
)

// Quota limits what several sessions have together, on any cards: those of one user of a daemon, for
// example. Memory is counted by who allocates it (SessionConfig.Memory), since pages may stay in use
// when what was in them is freed. A nil Quota limits nothing.
type Quota struct {
	owner string

	mu     sync.Mutex
	limits Limits
	used   Limits
}

// NewQuota makes a quota. A limit of 0 is none. The owner's name is for errors.
func NewQuota(owner string, limits Limits) *Quota { return &Quota{owner: owner, limits: limits} }

// SetLimits changes the limits. What is there already stays, also beyond them.
func (q *Quota) SetLimits(limits Limits) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limits = limits
}

// Used is what the sessions have.
func (q *Quota) Used() Limits {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// kind is a field of Limits.
type kind func(*Limits) *int

func limitPDs(l *Limits) *int          { return &l.PDs }
func limitMRs(l *Limits) *int          { return &l.MRs }
func limitCQs(l *Limits) *int          { return &l.CQs }
func limitQPs(l *Limits) *int          { return &l.QPs }
func limitAHs(l *Limits) *int          { return &l.AHs }
func limitSRQs(l *Limits) *int         { return &l.SRQs }
func limitCompChannels(l *Limits) *int { return &l.CompChannels }
func limitMemberships(l *Limits) *int  { return &l.Memberships }
func limitAttachments(l *Limits) *int  { return &l.Attachments }

func limitIDs(l *Limits) *int           { return &l.IDs }
func limitEventChannels(l *Limits) *int { return &l.EventChannels }

// take takes an object of a kind.
func (q *Quota) take(of kind, noun string) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit := *of(&q.limits); limit > 0 && *of(&q.used) >= limit {
		return fmt.Errorf("%w: %s has %d %ss, in all its programs; close some", verbs.ErrLimit, q.owner, *of(&q.used), noun)
	}
	*of(&q.used)++
	return nil
}

// give gives objects of a kind back.
func (q *Quota) give(of kind, n int) {
	if q == nil || n == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	*of(&q.used) -= n
}

// TakeMemory takes bytes; ErrLimit if there are too few.
func (q *Quota) TakeMemory(size uint64) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limits.Memory > 0 && (q.used.Memory >= q.limits.Memory || size > q.limits.Memory-q.used.Memory) {
		return fmt.Errorf("%w: %d bytes of memory; %s has %d of %d, in all its programs", verbs.ErrLimit, size, q.owner, q.used.Memory, q.limits.Memory)
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
}
