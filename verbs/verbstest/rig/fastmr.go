// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
)

// Mapped returns a DMA-mapped list of parts of the peer's region, given as alternating offsets and lengths.
func (p *Peer) Mapped(d kernel.DMADirection, parts ...int) (list []kernel.SG) {
	p.Helper()
	for i := 0; i < len(parts); i += 2 {
		list = append(list, kernel.SG{Memory: p.MR.Bytes()[parts[i]:][:parts[i+1]]})
	}
	if kernel.DMAMapSG(p.Ctx, list, d) != len(list) {
		p.Fatal("a list of the session's memory is not mapped")
	}
	return list
}

// FastMR allocates a fast region of any parts.
func (p *Peer) FastMR(entries int) *verbs.MR {
	p.Helper()
	mr, err := kernel.AllocFastMR(p.PD, kernel.MRTypeSGGaps, entries)
	Check(p, err)
	return mr
}

// Reg returns a request that registers a list as a fast region with the next key.
func (p *Peer) Reg(mr *verbs.MR, list []kernel.SG, access verbs.AccessFlags) verbs.SendWR {
	p.Helper()
	n, _, err := kernel.MapSG(mr, list, 0, 0)
	Check(p, err)
	if n != len(list) {
		p.Fatalf("%d of %d entries fit", n, len(list))
	}
	kernel.UpdateFastRegKey(mr, uint8(verbs.IncRKey(mr.RKey())))
	return verbs.SendWR{ID: 1, Opcode: verbs.WRRegMR, Reg: &verbs.RegMR{MR: mr, Key: mr.RKey(), Access: access}}
}

// Registered posts a fast registration and waits for it.
func (p *Peer) Registered(mr *verbs.MR, list []kernel.SG, access verbs.AccessFlags) {
	p.Helper()
	p.Post(p.Reg(mr, list, access))
	if wc := p.Expect(OK(1))[0]; wc.Opcode != verbs.WCRegMR {
		p.Errorf("fast registration: %+v", wc)
	}
}

// Invalidated posts the invalidation of a fast region's key and waits for it.
func (p *Peer) Invalidated(mr *verbs.MR) {
	p.Helper()
	p.Post(verbs.SendWR{ID: 1, Opcode: verbs.WRLocalInv, InvalidateRKey: mr.RKey()})
	p.Expect(OK(1))
}
