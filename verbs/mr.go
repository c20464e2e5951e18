package verbs

import (
	"fmt"
	"math"

	"github.com/roced/roced/datapath/ring"
)

// PD is a protection domain (ibv_pd). Queue pairs, memory regions and address handles work together
// only if they belong to the same one.
type PD struct {
	ctx    *Context
	handle Handle
}

// AllocPD makes a protection domain (ibv_alloc_pd).
func (c *Context) AllocPD() (*PD, error) {
	grant, err := c.provider.AllocPD()
	if err != nil {
		return nil, fmt.Errorf("allocate PD: %w", err)
	}
	return &PD{c, grant.PD}, nil
}

// Close frees the protection domain (ibv_dealloc_pd); ErrBusy while it has objects.
func (p *PD) Close() error {
	if p == nil {
		return fmt.Errorf("deallocate PD: %w", errNil)
	}
	if err := p.ctx.provider.DeallocPD(DeallocPDRequest{p.handle}); err != nil {
		return fmt.Errorf("deallocate PD: %w", err)
	}
	return nil
}

// LKey names a memory region in a scatter/gather entry.
type LKey = ring.LKey

// SGE is a piece of a memory region (ibv_sge). Regions are zero-based: Addr is the offset from the
// region's start, since the card never uses a program's addresses.
type SGE = ring.SGE

// MR is a memory region that the card may use (ibv_mr).
type MR struct {
	pd     *PD
	handle Handle
	lkey   LKey
	memory []byte
}

// AllocMR makes and registers length bytes of zeroed memory. It works with every Provider.
func (p *PD) AllocMR(length int, access AccessFlags) (*MR, error) {
	if p == nil {
		return nil, fmt.Errorf("allocate MR: %w", errNil)
	}
	grant, err := p.ctx.provider.AllocMR(AllocMRRequest{p.handle, length, access})
	if err != nil {
		return nil, fmt.Errorf("allocate MR of %d bytes: %w", length, err)
	}
	return p.addMR(grant), nil
}

// RegMR registers the caller's memory (ibv_reg_mr). Any slice will do; the region keeps it alive
// until it is closed. ErrUnsupported over the daemon, which cannot reach a client's memory.
func (p *PD) RegMR(memory []byte, access AccessFlags) (*MR, error) {
	if p == nil {
		return nil, fmt.Errorf("register MR: %w", errNil)
	}
	grant, err := p.ctx.provider.RegMR(RegMRRequest{p.handle, memory, access})
	if err != nil {
		return nil, fmt.Errorf("register MR of %d bytes: %w", len(memory), err)
	}
	return p.addMR(grant), nil
}

func (p *PD) addMR(grant MRGrant) *MR {
	mr := &MR{p, grant.MR, grant.LKey, grant.Memory}
	p.ctx.mu.Lock()
	defer p.ctx.mu.Unlock()
	p.ctx.mrs[mr.lkey] = mr
	return mr
}

// Close deregisters the region (ibv_dereg_mr). It does not wait for work requests that name the
// region: those that run later complete with WCLocProtErr. When Close returns, the card does not
// touch the memory any more.
func (m *MR) Close() error {
	if m == nil {
		return fmt.Errorf("deregister MR: %w", errNil)
	}
	ctx := m.pd.ctx
	if err := ctx.provider.DeregMR(DeregMRRequest{m.handle}); err != nil {
		return fmt.Errorf("deregister MR: %w", err)
	}
	ctx.mu.Lock()
	defer ctx.mu.Unlock()
	if ctx.mrs[m.lkey] == m { // else a new region has the key already
		delete(ctx.mrs, m.lkey)
	}
	return nil
}

// Bytes is the region's memory. What a request names belongs to the card from its posting to its
// completion.
func (m *MR) Bytes() []byte { return m.memory }

// LKey is the region's local key.
func (m *MR) LKey() LKey { return m.lkey }

// SGE names length bytes of the region from an offset on. If they do not lie in the region, the
// card refuses the request that uses them (WCLocProtErr).
func (m *MR) SGE(offset, length int) SGE {
	if offset < 0 || length < 0 || length > math.MaxUint32 {
		return SGE{Addr: math.MaxUint64, Length: math.MaxUint32, LKey: m.lkey}
	}
	return SGE{Addr: uint64(offset), Length: uint32(length), LKey: m.lkey}
}

// inlineBytes gives the memory that an SGE names, for a copy at posting time.
func (c *Context) inlineBytes(s SGE) ([]byte, error) {
	c.mu.Lock()
	mr := c.mrs[s.LKey]
	c.mu.Unlock()
	if mr == nil {
		return nil, fmt.Errorf("%w: lkey 0x%x is not a memory region of this context", ErrInvalid, uint32(s.LKey))
	}
	size := uint64(len(mr.memory))
	if s.Addr > size || uint64(s.Length) > size-s.Addr {
		return nil, fmt.Errorf("%w: SGE of %d bytes at %d exceeds the region's %d bytes", ErrInvalid, s.Length, s.Addr, size)
	}
	return mr.memory[s.Addr:][:s.Length], nil
}
