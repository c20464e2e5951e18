// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/internal/inside"
	"github.com/roced/roced/verbs/provider"
)

// SGE is a scatter/gather entry: a piece of a memory region (ibv_sge). Addr is an address in the region, which begins
// at the address that it was registered with: 0 unless RegMRIOVA or AllocMRIOVA specified another. The card checks key,
// range, PD and access when it uses an SGE (WCLocProtErr). It does not check an SGE of Length 0.
type SGE = ib.SGE

// MR is a memory region that the card can access (ibv_mr).
type MR struct {
	ctx    *Context
	handle provider.Handle
	lkey   LKey          // the card's key, which requests are checked against
	shown  atomic.Uint32 // the value of LKey and RKey; see UpdateFastRegKey of package kernel

	own      []byte                 // the session's memory that it was created with
	coherent bool                   // created by DMAAllocCoherent of package kernel
	fast     *inside.FastMR         // of a region registered by requests; else nil
	reregMu  sync.Mutex             // one Rereg at a time
	now      atomic.Pointer[region] // replaced by Rereg
}

// region is the extent of a memory region between two calls of Rereg.
type region struct {
	iova   uint64
	memory []byte
}

// AllocMR allocates and registers length bytes of zeroed memory. It works with every Provider. Addresses in the region
// begin at 0.
//
// A region may be empty, and has at most 1 GiB; a region of the program's own memory (RegMR) has at most
// DeviceAttr.MaxMRSize. The access flags for flush and huge pages are ErrUnsupported; those of AccessOptionalRange have
// no effect; unknown flags, and AccessRemoteWrite without AccessLocalWrite, are ErrInvalid.
func (p *PD) AllocMR(length int, access AccessFlags) (*MR, error) {
	return p.AllocMRIOVA(length, 0, access)
}

// AllocMRIOVA is AllocMR for a region whose addresses begin at iova, see RegMRIOVA.
func (p *PD) AllocMRIOVA(length int, iova uint64, access AccessFlags) (*MR, error) {
	if p == nil {
		return nil, fmt.Errorf("allocate MR: %w", errNil)
	}
	grant, err := provider.Do(p.ctx.provider, provider.AllocMR, provider.AllocMRRequest{PD: p.handle, Length: length, IOVA: iova, Access: access})
	if err != nil {
		return nil, fmt.Errorf("allocate MR of %d bytes: %w", length, err)
	}
	return p.ctx.addOwnMR(grant, iova), nil
}

// RegMR registers the caller's memory (ibv_reg_mr). Any slice is allowed; the region keeps it alive until it is closed.
// Addresses in the region begin at 0. ErrUnsupported over the service, which cannot access a client's memory. Sizes and
// access flags are as for AllocMR.
func (p *PD) RegMR(memory []byte, access AccessFlags) (*MR, error) {
	return p.RegMRIOVA(memory, 0, access)
}

// RegMRIOVA is RegMR for a region whose addresses begin at iova (ibv_reg_mr_iova). The card accepts SGEs with addresses
// from iova to iova+len(memory); it never uses them as memory addresses, so any iova is allowed. ErrInvalid if the
// region would exceed 2^64, or if access has AccessZeroBased and iova is not 0.
func (p *PD) RegMRIOVA(memory []byte, iova uint64, access AccessFlags) (*MR, error) {
	if p == nil {
		return nil, fmt.Errorf("register MR: %w", errNil)
	}
	grant, err := provider.Do(p.ctx.provider, provider.RegMR, provider.RegMRRequest{PD: p.handle, Memory: memory, IOVA: iova, Access: access})
	if err != nil {
		return nil, fmt.Errorf("register MR of %d bytes: %w", len(memory), err)
	}
	return p.ctx.addMR(grant, iova), nil
}

func (c *Context) addMR(grant provider.MRGrant, iova uint64) *MR {
	mr := c.newMR(grant, iova)
	c.keep(mr)
	return mr
}

// addOwnMR is addMR for the session's own memory, which can be mapped.
func (c *Context) addOwnMR(grant provider.MRGrant, iova uint64) *MR {
	mr := c.addMR(grant, iova)
	mr.own = grant.Memory
	c.space.add(mr, grant.Memory)
	return mr
}

func (c *Context) newMR(grant provider.MRGrant, iova uint64) *MR {
	mr := &MR{ctx: c, handle: grant.MR, lkey: grant.LKey}
	mr.shown.Store(uint32(grant.LKey))
	mr.now.Store(&region{iova, grant.Memory})
	return mr
}

func (c *Context) keep(mr *MR) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mrs[indexOf(mr.lkey)] = mr
}

// indexOf returns the fixed part of a key.
func indexOf(key LKey) LKey { return key &^ keyMask }

// ReregAttr are the attributes that Rereg changes; its flags select the fields.
type ReregAttr struct {
	Memory []byte // with ReregChangeTranslation, like IOVA
	IOVA   uint64
	PD     *PD
	Access AccessFlags
}

// Rereg changes the region's memory, PD or access flags (ibv_rereg_mr). Its keys do not change. If it fails, the region
// is unchanged; ErrBusy while a memory window is bound to it. Each request that uses the region and has not run yet
// sees either the old or the new region. After Rereg has returned, the card no longer accesses replaced memory. New
// memory is the caller's, as with RegMR.
func (m *MR) Rereg(attr *ReregAttr, flags ReregFlags) error {
	if m == nil || attr == nil {
		return fmt.Errorf("reregister MR: %w", errNil)
	}
	request := provider.ReregMRRequest{MR: m.handle, Flags: flags, Memory: attr.Memory, IOVA: attr.IOVA, Access: attr.Access}
	if flags&ReregChangePD != 0 {
		if attr.PD == nil {
			return fmt.Errorf("reregister MR: %w", errNil)
		}
		if attr.PD.ctx != m.ctx {
			return fmt.Errorf("reregister MR: %w: the PD belongs to another context", ErrInvalid)
		}
		request.PD = attr.PD.handle
	}
	m.reregMu.Lock()
	defer m.reregMu.Unlock()
	if err := provider.Exec(m.ctx.provider, provider.ReregMR, request); err != nil {
		return fmt.Errorf("reregister MR: %w", err)
	}
	if flags&ReregChangeTranslation != 0 {
		m.ctx.space.remove(m, m.own)
		m.own = nil
		m.now.Store(&region{attr.IOVA, attr.Memory})
	}
	return nil
}

// Close deregisters the region (ibv_dereg_mr); ErrBusy while a memory window is bound to it. It does not wait for work
// requests that use the region: those that run later complete with WCLocProtErr. After Close has returned, the card no
// longer accesses the memory.
func (m *MR) Close() error {
	if m == nil {
		return fmt.Errorf("deregister MR: %w", errNil)
	}
	m.reregMu.Lock()
	defer m.reregMu.Unlock()
	m.ctx.space.remove(m, m.own)
	if err := provider.Exec(m.ctx.provider, provider.DeregMR, provider.DeregMRRequest{MR: m.handle}); err != nil {
		if KindOf(err) == ErrBusy {
			m.ctx.space.add(m, m.own)
		}
		return fmt.Errorf("deregister MR: %w", err)
	}
	m.ctx.mu.Lock()
	defer m.ctx.mu.Unlock()
	if index := indexOf(m.lkey); m.ctx.mrs[index] == m { // otherwise a new region already has the key
		delete(m.ctx.mrs, index)
	}
	return nil
}

// Bytes returns the region's memory; nil for a fast region. The part that a request uses belongs to the card from the
// posting to the completion of the request.
func (m *MR) Bytes() []byte {
	if m == nil {
		return nil
	}
	return m.now.Load().memory
}

// IOVA returns the address that the region begins at.
func (m *MR) IOVA() uint64 {
	if m == nil {
		return 0
	}
	return m.now.Load().iova
}

// SGE returns an entry for length bytes of the region from an offset on. If they exceed the region, the request that
// uses them fails (WCLocProtErr).
func (m *MR) SGE(offset, length int) SGE {
	if m == nil {
		return SGE{}
	}
	key := m.cardKey()
	if offset < 0 || length < 0 || length > math.MaxUint32 {
		return SGE{Addr: math.MaxUint64, Length: math.MaxUint32, LKey: key}
	}
	return SGE{Addr: m.now.Load().iova + uint64(offset), Length: uint32(length), LKey: key}
}

// inlineBytes returns the memory of an SGE, for a copy at posting time. As in the card, an SGE of length 0 needs no
// valid key.
func (c *Context) inlineBytes(s SGE) ([]byte, error) {
	if s.Length == 0 {
		return nil, nil
	}
	index, mapped := indexOf(s.LKey), s.LKey == ib.LocalDMALKey
	if mapped {
		index = ib.DMAAddr(s.Addr).Key()
	}
	c.mu.Lock()
	mr := c.mrs[index]
	c.mu.Unlock()
	if mr == nil || mr.fast != nil || !mapped && mr.lkey != s.LKey {
		return nil, fmt.Errorf("%w: lkey 0x%x is no memory region of this context, or is a fast region, which cannot be sent inline", ErrInvalid, uint32(s.LKey))
	}
	r := mr.now.Load()
	offset, size := s.Addr-r.iova, uint64(len(r.memory))
	if mapped {
		offset = ib.DMAAddr(s.Addr).Offset()
	}
	if offset > size || uint64(s.Length) > size-offset {
		return nil, fmt.Errorf("%w: SGE of %d bytes at %d exceeds the region of %d bytes at %d", ErrInvalid, s.Length, s.Addr, size, r.iova)
	}
	return r.memory[offset:][:s.Length], nil
}
