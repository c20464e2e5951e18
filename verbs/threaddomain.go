// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"sync"
)

// TD is a thread domain (ibv_td): a promise that objects are used by one thread at a time, which lets hardware drivers
// avoid locks. It has no effect here, and all methods remain safe for concurrent use.
type TD struct {
	ctx *Context
	domainUsers
}

// domainUsers counts the parent domains that use a thread domain or a protection domain.
type domainUsers struct {
	mu     sync.Mutex
	users  int
	closed bool
}

func (u *domainUsers) use() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return ErrObjectClosed
	}
	u.users++
	return nil
}

func (u *domainUsers) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users--
}

// close calls free if the domain has no users.
func (u *domainUsers) close(free func() error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.closed:
		return ErrObjectClosed
	case u.users > 0:
		return fmt.Errorf("%w: %s; close them first", ErrBusy, count(u.users, "parent domain"))
	}
	err := free()
	u.closed = err == nil
	return err
}

// AllocTD allocates a thread domain (ibv_alloc_td).
func (c *Context) AllocTD() (*TD, error) {
	if c == nil {
		return nil, fmt.Errorf("allocate TD: %w", errNil)
	}
	if err := c.gone(); err != nil {
		return nil, fmt.Errorf("allocate TD: %w", err)
	}
	return &TD{ctx: c}, nil
}

// Close frees the thread domain (ibv_dealloc_td); ErrBusy while a parent domain uses it.
func (d *TD) Close() error {
	if d == nil {
		return fmt.Errorf("deallocate TD: %w", errNil)
	}
	if err := d.close(func() error { return nil }); err != nil {
		return fmt.Errorf("deallocate TD: %w", err)
	}
	return nil
}

// AllocParentDomain allocates a parent domain of this PD, with an optional thread domain (ibv_alloc_parent_domain).
// Objects created in the PD and in the parent domain can be used together. Neither this PD nor the thread domain can be
// closed before the parent domain. Custom allocators are not supported: the card allocates.
func (p *PD) AllocParentDomain(td *TD) (*PD, error) {
	if p == nil {
		return nil, fmt.Errorf("allocate parent domain: %w", errNil)
	}
	if td != nil && td.ctx != p.ctx {
		return nil, fmt.Errorf("allocate parent domain: %w: the TD belongs to another context", ErrInvalid)
	}
	if p.parent != nil {
		return nil, fmt.Errorf("allocate parent domain: %w: the domain is a parent domain itself", ErrInvalid)
	}
	if err := p.users.use(); err != nil {
		return nil, fmt.Errorf("allocate parent domain: %w: the PD", err)
	}
	if td != nil {
		if err := td.use(); err != nil {
			p.users.leave()
			return nil, fmt.Errorf("allocate parent domain: %w: the TD", err)
		}
	}
	return &PD{ctx: p.ctx, handle: p.handle, parent: p, td: td}, nil
}

// closeParent frees a parent domain.
func (p *PD) closeParent() error {
	return p.users.close(func() error {
		p.parent.users.leave()
		if p.td != nil {
			p.td.leave()
		}
		return nil
	})
}
