// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/provider"
)

// PD is a protection domain (ibv_pd). Queue pairs, memory regions and address handles can be used together only if they
// belong to the same PD.
type PD struct {
	ctx    *Context
	handle provider.Handle
	users  domainUsers
	parent *PD // of a parent domain: the underlying PD
	td     *TD // of a parent domain; nil if it has none
}

// AllocPD allocates a protection domain (ibv_alloc_pd).
func (c *Context) AllocPD() (*PD, error) {
	if c == nil {
		return nil, fmt.Errorf("allocate PD: %w", errNil)
	}
	grant, err := provider.Do(c.provider, provider.AllocPD, provider.None{})
	if err != nil {
		return nil, fmt.Errorf("allocate PD: %w", err)
	}
	return &PD{ctx: c, handle: grant.PD}, nil
}

// Context returns the context of the protection domain.
func (p *PD) Context() *Context {
	if p == nil {
		return nil
	}
	return p.ctx
}

// Close frees the protection domain (ibv_dealloc_pd); ErrBusy while it has objects or parent domains. Objects created
// in a parent domain remain in its underlying domain.
func (p *PD) Close() error {
	if p == nil {
		return fmt.Errorf("deallocate PD: %w", errNil)
	}
	free := func() error {
		return p.users.close(func() error {
			return provider.Exec(p.ctx.provider, provider.DeallocPD, provider.DeallocPDRequest{PD: p.handle})
		})
	}
	if p.parent != nil {
		free = p.closeParent
	}
	if err := free(); err != nil {
		return fmt.Errorf("deallocate PD: %w", err)
	}
	return nil
}
