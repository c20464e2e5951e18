package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/provider"
)

// PD is a protection domain (ibv_pd). Queue pairs, memory regions and address handles work together
// only if they belong to the same one.
type PD struct {
	ctx    *Context
	handle provider.Handle
	users  domainUsers
	parent *PD // of a parent domain: what it stands for
	td     *TD // likewise; nil for none
}

// AllocPD makes a protection domain (ibv_alloc_pd).
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

// Context is the device that the protection domain is of.
func (p *PD) Context() *Context {
	if p == nil {
		return nil
	}
	return p.ctx
}

// Close frees the protection domain (ibv_dealloc_pd); ErrBusy while it has objects or parent domains. That of a parent
// domain leaves objects that were made in it to the domain that it stands for.
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
