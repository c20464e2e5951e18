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

// SGE is a piece of a memory region (ibv_sge). Addr is an address in the region, which begins at the
// address that it was registered with: 0 unless RegMRIOVA or AllocMRIOVA gave another. The card
// checks key, range, PD and access when it uses an SGE (WCLocProtErr). It checks nothing of one whose
// Length is 0.
type SGE = ib.SGE

// MR is a memory region that the card may use (ibv_mr).
type MR struct {
	ctx    *Context
	handle provider.Handle
	lkey   LKey          // the card's, by which requests are checked
	shown  atomic.Uint32 // what LKey and RKey give; see UpdateFastRegKey of package kernel

	own      []byte                 // the session's memory that it was made with
	coherent bool                   // of DMAAllocCoherent of package kernel
	fast     *inside.FastMR         // of one that requests register; else nil
	reregMu  sync.Mutex             // one Rereg at a time
	now      atomic.Pointer[region] // replaced by Rereg
}

// region is what a memory region consists of at a time.
type region struct {
	iova   uint64
	memory []byte
}

// AllocMR makes and registers length bytes of zeroed memory. It works with every Provider. Addresses
// in the region begin at 0.
//
// A region may be empty, and has at most 1 GiB; one of the program's own memory (RegMR) at most
// DeviceAttr.MaxMRSize. Access flags of flush and of huge pages are ErrUnsupported; those of
// AccessOptionalRange have no effect; others that are unknown, and remote writing without
// AccessLocalWrite, are ErrInvalid.
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

// RegMR registers the caller's memory (ibv_reg_mr). Any slice will do; the region keeps it alive
// until it is closed. Addresses in the region begin at 0. ErrUnsupported over the service, which
// cannot reach a client's memory. Sizes and access flags are AllocMR's.
func (p *PD) RegMR(memory []byte, access AccessFlags) (*MR, error) {
	return p.RegMRIOVA(memory, 0, access)
}

// RegMRIOVA is RegMR for a region whose addresses begin at iova (ibv_reg_mr_iova). The card takes
// SGEs with addresses from iova to iova+len(memory); it never uses them as addresses of memory, so
// that any iova will do. ErrInvalid if the region would reach 2^64, or if access has AccessZeroBased
// and iova is not 0.
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

// addOwnMR is addMR of the session's own memory, which can be mapped.
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

// indexOf is the part of a key that stays.
func indexOf(key LKey) LKey { return key &^ keyMask }

// ReregAttr is what Rereg changes; its flags say which fields count.
type ReregAttr struct {
	Memory []byte // with ReregChangeTranslation, like IOVA
	IOVA   uint64
	PD     *PD
	Access AccessFlags
}

// Rereg changes the region's memory, PD or access flags (ibv_rereg_mr). Its keys stay the same. If it
// fails, nothing has changed; ErrBusy while a memory window is bound to it. Each request that names the region and has not run yet uses the region
// either as it was or as it is now, and when Rereg returns, the card does not touch memory any more
// that it has replaced. New memory is the caller's, as with RegMR.
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

// Close deregisters the region (ibv_dereg_mr); ErrBusy while a memory window is bound to it. It does not wait for work requests that name the
// region: those that run later complete with WCLocProtErr. When Close returns, the card does not
// touch the memory any more.
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
	if index := indexOf(m.lkey); m.ctx.mrs[index] == m { // else a new region has the key already
		delete(m.ctx.mrs, index)
	}
	return nil
}

// Bytes is the region's memory; nil of a fast region. What a request names belongs to the card from its posting to its
// completion.
func (m *MR) Bytes() []byte {
	if m == nil {
		return nil
	}
	return m.now.Load().memory
}

// IOVA is the address that the region begins at.
func (m *MR) IOVA() uint64 {
	if m == nil {
		return 0
	}
	return m.now.Load().iova
}

// SGE names length bytes of the region from an offset on. If they do not lie in the region, the
// card refuses the request that uses them (WCLocProtErr).
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

// inlineBytes gives the memory that an SGE names, for a copy at posting time. No bytes need no key, as
// with the card.
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
		return nil, fmt.Errorf("%w: lkey 0x%x is not a memory region of this context, or it is a fast one, of which nothing is sent inline", ErrInvalid, uint32(s.LKey))
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
