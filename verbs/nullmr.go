package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/provider"
)

// AllocNullMR makes a region without memory (ibv_alloc_null_mr). An SGE of it may have any address and length: what is
// sent from it is zeros, and what is received or read into it is lost. So a receive keeps some parts of messages and
// not others. Only its LKey counts: peers get WCRemAccessErr, no window can be bound to it, and inline data cannot
// come from it. It has no Bytes, and Rereg is ErrInvalid.
func (p *PD) AllocNullMR() (*MR, error) {
	if p == nil {
		return nil, fmt.Errorf("allocate null MR: %w", errNil)
	}
	grant, err := provider.Do(p.ctx.provider, provider.AllocNullMR, provider.AllocNullMRRequest{PD: p.handle})
	if err != nil {
		return nil, fmt.Errorf("allocate null MR: %w", err)
	}
	return p.ctx.addMR(grant, 0), nil
}
