// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/provider"
)

// AllocNullMR allocates a region without memory (ibv_alloc_null_mr). An SGE of it may have any address and length: a
// send from it sends zeros, and data received or read into it is discarded. A receive can use it to discard parts of
// messages. Only its LKey is usable: peers get WCRemAccessErr, windows cannot be bound to it, and inline data cannot
// come from it. Its Bytes are nil, and Rereg returns ErrInvalid.
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
