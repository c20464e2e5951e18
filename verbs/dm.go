// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs/provider"
)

// DM is device memory (ibv_dm): a small amount of memory that hardware has on the card. Here it is plain memory of the
// card, no faster than a region, for programs that expect it. Programs access it by CopyTo and CopyFrom, and by regions
// of it.
type DM struct {
	ctx    *Context
	handle provider.Handle

	mu     sync.Mutex // held while bytes are copied, so that Close cannot free them meanwhile
	memory []byte
	closed bool
}

// AllocDM allocates zeroed device memory (ibv_alloc_dm). ErrLimit if all of the session's device memory would exceed
// MaxDMSize, ErrInvalid for length 0. It counts as a memory region towards limits.
func (c *Context) AllocDM(length int) (*DM, error) {
	if c == nil {
		return nil, fmt.Errorf("allocate DM: %w", errNil)
	}
	grant, err := provider.Do(c.provider, provider.AllocDM, provider.AllocDMRequest{Length: length})
	if err != nil {
		return nil, fmt.Errorf("allocate DM of %d bytes: %w", length, err)
	}
	return &DM{ctx: c, handle: grant.DM, memory: grant.Memory}, nil
}

// CopyTo writes data at an offset (ibv_memcpy_to_dm). ErrInvalid beyond the end.
func (d *DM) CopyTo(offset int, data []byte) error {
	return d.use("copy to DM", offset, len(data), func(piece []byte) { copy(piece, data) })
}

// CopyFrom reads data from an offset (ibv_memcpy_from_dm). ErrInvalid beyond the end.
func (d *DM) CopyFrom(offset int, data []byte) error {
	return d.use("copy from DM", offset, len(data), func(piece []byte) { copy(data, piece) })
}

func (d *DM) use(doing string, offset, length int, do func(piece []byte)) error {
	if d == nil {
		return fmt.Errorf("%s: %w", doing, errNil)
	}
	if err := d.ctx.gone(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%s: %w: the DM", doing, ErrObjectClosed)
	}
	if offset < 0 || offset > len(d.memory) || length > len(d.memory)-offset {
		return fmt.Errorf("%s: %w: %d bytes at offset %d exceed the size of %d", doing, ErrInvalid, length, offset, len(d.memory))
	}
	do(d.memory[offset:][:length])
	return nil
}

// RegDMMR registers a part of device memory (ibv_reg_dm_mr). Addresses in the region begin at 0, with or without
// AccessZeroBased. Its Bytes are that part. Rereg of such a region can change its PD and its access, but not the
// memory.
func (p *PD) RegDMMR(dm *DM, offset, length int, access AccessFlags) (*MR, error) {
	if p == nil || dm == nil {
		return nil, fmt.Errorf("register DM: %w", errNil)
	}
	if dm.ctx != p.ctx {
		return nil, fmt.Errorf("register DM: %w: the DM belongs to another context", ErrInvalid)
	}
	var mr *MR
	var err error
	used := dm.use("register DM", offset, max(length, 0), func(piece []byte) {
		var grant provider.MRGrant
		request := provider.RegDMMRRequest{PD: p.handle, DM: dm.handle, Offset: offset, Length: length, Access: access}
		if grant, err = provider.Do(p.ctx.provider, provider.RegDMMR, request); err == nil {
			grant.Memory = piece
			mr = p.ctx.addMR(grant, 0)
		}
	})
	if used != nil {
		return nil, used
	}
	if err != nil {
		return nil, fmt.Errorf("register DM: %w", err)
	}
	return mr, nil
}

// Close frees the memory (ibv_free_dm); ErrBusy while it has regions.
func (d *DM) Close() error {
	if d == nil {
		return fmt.Errorf("free DM: %w", errNil)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := provider.Exec(d.ctx.provider, provider.FreeDM, provider.FreeDMRequest{DM: d.handle}); err != nil {
		return fmt.Errorf("free DM: %w", err)
	}
	d.closed = true
	return nil
}
