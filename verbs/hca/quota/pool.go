// SPDX-License-Identifier: Apache-2.0

//go:build linux

package quota

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
)

// Pool counts the resources that the users of a service have together (Quota). A nil Pool has no limits.
type Pool struct {
	mu     sync.Mutex
	limits PoolLimits
	used   PoolLimits
}

// PoolLimits has the limits of all users together. 0 is no limit.
type PoolLimits struct {
	Memory      uint64 // bytes
	Descriptors uint64 // of the process, for connections, channels and memberships
	Mappings    uint64 // of the process, for regions of programs' own memory
}

// NewPool creates an unused pool.
func NewPool(limits PoolLimits) *Pool { return &Pool{limits: limits} }

// SetLimits changes the limits. Existing use stays, even beyond them.
func (p *Pool) SetLimits(limits PoolLimits) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limits = limits
}

// poolKind is a field of PoolLimits.
type poolKind struct {
	field func(*PoolLimits) *uint64
	noun  string
}

var (
	poolMemory      = poolKind{func(l *PoolLimits) *uint64 { return &l.Memory }, "bytes of memory"}
	poolDescriptors = poolKind{func(l *PoolLimits) *uint64 { return &l.Descriptors }, "descriptors of the service"}
	poolMappings    = poolKind{func(l *PoolLimits) *uint64 { return &l.Mappings }, "mappings of the service, for regions that lie far apart"}
)

// take acquires asked units for an owner that already has own.
func (p *Pool) take(of poolKind, owner string, own, asked uint64) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	used, most := of.field(&p.used), *of.field(&p.limits)
	if most > 0 {
		if err := (Shared{of.noun, *used, most}).admit(owner, own, asked); err != nil {
			return err
		}
	}
	*used += asked
	return nil
}

func (p *Pool) give(of poolKind, n uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	*of.field(&p.used) -= n
}

// Shared is a limited resource of a card, or of a service, for all users.
type Shared struct {
	Noun       string
	Used, Most uint64
}

const (
	reserveParts = 8  // an eighth is reserved for users that have few
	littleParts  = 32 // few means at most this part of the reserve
	littleLeast  = 5  // and at least the descriptors of a connection
)

// admit returns an error unless a user that has own units can get asked more. However many users reach their limits,
// some are left for users without any.
func (s Shared) admit(owner string, own, asked uint64) error {
	reserve := s.Most / reserveParts
	little := max(reserve/littleParts, littleLeast)
	switch {
	case s.Used >= s.Most || asked > s.Most-s.Used:
		return fmt.Errorf("%w: %d %s: all users together have %d of %d; close some", verbs.ErrLimit, asked, s.Noun, s.Used, s.Most)
	case s.Used+asked > s.Most-reserve && own+asked > little:
		return fmt.Errorf("%w: %d %s: all users together have %d of %d, the last eighth is for those with at most %d, and %s has %d",
			verbs.ErrLimit, asked, s.Noun, s.Used, s.Most, little, owner, own)
	}
	return nil
}
