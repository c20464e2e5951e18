// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/internal/inside"
	"github.com/roced/roced/verbs/provider"
)

func init() {
	inside.Set(inside.Access[*Context, *PD, *MR, *QP, *CQ]{
		Provider: func(c *Context) provider.Provider { return c.provider },
		PD:       func(p *PD) provider.Handle { return p.handle },
		MR:       func(m *MR) (provider.Provider, provider.Handle) { return m.ctx.provider, m.handle },
		Bytes:    (*Context).inlineBytes,

		FindMemory:  (*Context).findMemory,
		AddCoherent: func(c *Context, grant provider.MRGrant) { c.addOwnMR(grant, 0).coherent = true },
		Coherent:    (*Context).coherent,

		AddFast: (*PD).addFast,
		Fast:    func(m *MR) *inside.FastMR { return m.fast },
		SetIOVA: func(m *MR, iova uint64) { m.now.Store(&region{iova: iova}) },
		SetKey:  func(m *MR, key uint8) { m.shown.Store(uint32(m.lkey)&^keyMask | uint32(key)) },

		Queued:   (*CQ).peek,
		ArmCount: (*CQ).armForCount,

		CheckModifyQP: checkModifyQP,
		HasReceives:   func(q *QP) bool { return q.recv != nil },
		AwaitPolled: func(ctx context.Context, q *QP, receives bool) error {
			if receives {
				return q.await(ctx, q.unpolledReceives)
			}
			return q.await(ctx, q.unpolledSends)
		},
	})
}

// findMemory returns the key of the region that contains these bytes, and their offset in it.
func (c *Context) findMemory(memory []byte) (key ib.LKey, offset uint64, ok bool) {
	mr, offset := c.space.find(memory)
	if mr == nil {
		return 0, 0, false
	}
	return mr.lkey, offset, true
}

// coherent returns the region of coherent memory with this key, or nil.
func (c *Context) coherent(key ib.LKey) *MR {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mr := c.mrs[key]; mr != nil && mr.coherent {
		return mr
	}
	return nil
}

// addFast creates a fast region, which has no memory.
func (p *PD) addFast(grant provider.MRGrant, fast *inside.FastMR) *MR {
	grant.Memory = nil
	mr := p.ctx.newMR(grant, 0)
	mr.fast = fast
	p.ctx.keep(mr)
	return mr
}
