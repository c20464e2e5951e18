// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"sync"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// FMR is a fast memory region that commands map (ib_fmr). Linux 5.8 replaced it by AllocFastMR's regions, which
// requests register. It supports programs written like the kernel's protocols before 5.8.
type FMR struct {
	mr     *verbs.MR
	attr   FMRAttr
	access verbs.AccessFlags

	mu   sync.Mutex
	maps int // since the last unmap
}

// FMRAttr is the size of an FMR, and of its pages (ib_fmr_attr).
type FMRAttr struct {
	MaxPages  int
	MaxMaps   int   // maximum number of maps between two unmaps
	PageShift uint8 // pages have 2^PageShift bytes
}

// AllocFMR allocates an unmapped region (ib_alloc_fmr). Access flags are those of its mappings. ErrInvalid for more
// pages than DeviceAttr.MaxFastRegPageListLen, no maps, or pages smaller than MinPageSize or larger than 1 GiB.
func AllocFMR(p *verbs.PD, access verbs.AccessFlags, attr *FMRAttr) (*FMR, error) {
	if p == nil || attr == nil {
		return nil, fmt.Errorf("allocate FMR: %w", errNil)
	}
	if attr.MaxMaps < 1 || attr.PageShift < 12 || attr.PageShift > 30 {
		return nil, fmt.Errorf("allocate FMR: %w: %d maps, pages of 2^%d bytes; valid are at least 1 map and pages of 2^12 to 2^30", verbs.ErrInvalid, attr.MaxMaps, attr.PageShift)
	}
	mr, err := AllocFastMR(p, MRTypeMemReg, attr.MaxPages)
	if err != nil {
		return nil, fmt.Errorf("allocate FMR: %w", err)
	}
	return &FMR{mr: mr, attr: *attr, access: access}, nil
}

// LKey returns the local key of the mapping; each mapping has another key.
func (f *FMR) LKey() verbs.LKey {
	if f == nil {
		return 0
	}
	return f.mr.LKey()
}

// RKey returns the remote key of the mapping.
func (f *FMR) RKey() verbs.RKey { return verbs.RKey(f.LKey()) }

// MapPhys maps pages, by their DMA addresses, at iova (ib_map_phys_fmr). It ends the previous mapping and invalidates
// its key. ErrInvalid for addresses within pages, too many pages, more maps than FMRAttr.MaxMaps since Unmap, and
// memory that is not mapped in a direction that the access flags permit: then the region is not mapped.
func (f *FMR) MapPhys(pages []DMAAddr, iova uint64) error {
	if f == nil {
		return fmt.Errorf("map FMR: %w", errNil)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	size := uint64(1) << f.attr.PageShift
	switch {
	case len(pages) == 0 || len(pages) > f.attr.MaxPages:
		return fmt.Errorf("map FMR: %w: %d pages; valid are 1 to %d", verbs.ErrInvalid, len(pages), f.attr.MaxPages)
	case f.maps == f.attr.MaxMaps:
		return fmt.Errorf("map FMR: %w: it was mapped %d times; unmap it first", verbs.ErrInvalid, f.maps)
	case iova&(size-1) != 0:
		return fmt.Errorf("map FMR: %w: address 0x%x is within a page", verbs.ErrInvalid, iova)
	}
	list := in.Fast(f.mr).List
	for i, page := range pages {
		if uint64(page)&(size-1) != 0 {
			return fmt.Errorf("map FMR: %w: page %d is at 0x%x, within a page", verbs.ErrInvalid, i, uint64(page))
		}
		ring.PutRegEntry(list, i, ring.RegEntry{Addr: page, Length: size})
	}
	key := verbs.IncRKey(f.RKey())
	reg := ring.Reg{Length: uint64(len(pages)) * size, Access: f.access, Count: uint32(len(pages))}
	session, handle := in.MR(f.mr)
	if err := provider.Exec(session, provider.MapFMR, provider.MapFMRRequest{MR: handle, Key: key, IOVA: iova, Reg: reg}); err != nil {
		return fmt.Errorf("map FMR: %w", err)
	}
	UpdateFastRegKey(f.mr, uint8(key))
	f.maps++
	return nil
}

// UnmapFMR unmaps a list of regions (ib_unmap_fmr). It ends with the first failure.
func UnmapFMR(list []*FMR) error {
	for _, f := range list {
		if err := f.unmap(); err != nil {
			return fmt.Errorf("unmap FMR: %w", err)
		}
	}
	return nil
}

func (f *FMR) unmap() error {
	if f == nil {
		return errNil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	session, handle := in.MR(f.mr)
	err := provider.Exec(session, provider.UnmapFMR, provider.UnmapFMRRequest{MR: handle})
	if err == nil {
		f.maps = 0
	}
	return err
}

// Close frees a region (ib_dealloc_fmr); ErrBusy while it is mapped.
func (f *FMR) Close() error {
	if f == nil {
		return fmt.Errorf("deallocate FMR: %w", errNil)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.maps > 0 {
		return fmt.Errorf("deallocate FMR: %w: it is mapped; unmap it first", verbs.ErrBusy)
	}
	return f.mr.Close()
}
