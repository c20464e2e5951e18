// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/inside"
	"github.com/roced/roced/verbs/provider"
)

// AllocFastMR allocates a fast memory region, which has no memory yet, of up to the given entries (ib_alloc_mr). MapSG
// sets its memory, a request (WRRegMR) registers it, and a request that invalidates its key (WRLocalInv, or the peer's
// WRSendWithInv) frees it for the next registration:
//
//	free ── MapSG, WRRegMR ──► valid ── WRLocalInv, the peer's WRSendWithInv ──► free
//
// An access by the key of a free region fails like one by an unknown key (WCLocProtErr, WCRemAccessErr). ErrInvalid for
// more entries than DeviceAttr.MaxFastRegPageListLen.
func AllocFastMR(p *verbs.PD, kind MRType, entries int) (*verbs.MR, error) {
	if p == nil {
		return nil, fmt.Errorf("allocate fast MR: %w", errNil)
	}
	grant, err := provider.Do(in.Provider(p.Context()), provider.AllocFastMR, provider.AllocFastMRRequest{PD: in.PD(p), Type: kind, Entries: entries})
	if err != nil {
		return nil, fmt.Errorf("allocate fast MR: %w", err)
	}
	return in.AddFast(p, grant, &inside.FastMR{Kind: kind, Most: entries, List: grant.Memory}), nil
}

// MinPageSize is the minimum page size in bytes; larger ones are powers of two.
const MinPageSize = 4096

// MapSG sets a fast region's memory to as much of a mapped list as it can hold, from an offset in the first entry on
// (ib_map_mr_sg). It returns the number of entries that fit completely and, if the next one fits in part, the number of
// its bytes; the rest is for another region. The region begins at MR.IOVA, which has the first byte's offset in its
// page.
//
// In a region of MRTypeMemReg, only the first entry may begin and only the last one may end within a page, except where
// an entry continues the one before: the list is mapped up to that point. MRTypeSGGaps ignores the page size.
//
// The list belongs to the card from the posting of the request to its completion.
func MapSG(m *verbs.MR, list []SG, offset, pageSize int) (entries, rest int, err error) {
	if m == nil {
		return 0, 0, fmt.Errorf("map SG: %w", errNil)
	}
	f := in.Fast(m)
	switch {
	case f == nil:
		return 0, 0, fmt.Errorf("map SG: %w: the region is not a fast one; use AllocFastMR", verbs.ErrInvalid)
	case len(list) == 0 || offset < 0 || offset > list[0].length:
		return 0, 0, fmt.Errorf("map SG: %w: %d entries, from byte %d on", verbs.ErrInvalid, len(list), offset)
	case f.Kind == MRTypeMemReg && (pageSize < MinPageSize || pageSize&(pageSize-1) != 0):
		return 0, 0, fmt.Errorf("map SG: %w: pages of %d bytes; the size must be a power of two, at least %d", verbs.ErrInvalid, pageSize, MinPageSize)
	}
	f.Lock()
	defer f.Unlock()
	f.Meta = 0
	if f.Kind == MRTypeMemReg {
		entries, rest, err = mapPages(f, list, offset, pageSize)
	} else {
		entries = mapPieces(f, list, offset)
	}
	if err != nil {
		f.Count, f.Length = 0, 0
		return 0, 0, fmt.Errorf("map SG: %w", err)
	}
	in.SetIOVA(m, (list[0].addr + DMAAddr(offset)).Offset())
	return entries, rest, nil
}

// mapPieces copies the entries to the list unchanged.
func mapPieces(f *inside.FastMR, list []SG, offset int) (entries int) {
	f.Count, f.Length = 0, 0
	for _, sg := range list {
		if f.Count == f.Most {
			break
		}
		if length := uint64(sg.length - offset); length > 0 {
			put(f, sg.addr+DMAAddr(offset), length)
		}
		entries, offset = entries+1, 0
	}
	return entries
}

func put(f *inside.FastMR, addr DMAAddr, length uint64) {
	ring.PutRegEntry(f.List, f.Count, ring.RegEntry{Addr: addr, Length: length})
	f.Count++
	f.Length += length
}

// mapPages adds the pages of the entries to the list.
func mapPages(f *inside.FastMR, list []SG, offset, pageSize int) (entries, rest int, err error) {
	f.Count = 0
	first := list[0].addr + DMAAddr(offset)
	entries, rest, f.Length, err = SGToPages(list, offset, pageSize, func(page DMAAddr) error {
		if f.Count == f.Most {
			return fmt.Errorf("%w: the region has %d entries", verbs.ErrLimit, f.Most)
		}
		ring.PutRegEntry(f.List, f.Count, ring.RegEntry{Addr: page, Length: uint64(pageSize)})
		f.Count++
		return nil
	})
	if err == nil {
		trim(f, first, uint64(pageSize))
	}
	return entries, rest, err
}

// trim cuts off the parts of the first and the last page that do not belong to the region.
func trim(f *inside.FastMR, first DMAAddr, pageSize uint64) {
	within := uint64(first) & (pageSize - 1)
	for i, left := 0, f.Length; i < f.Count; i++ {
		e := ring.GetRegEntry(f.List, i)
		e.Addr, e.Length = e.Addr+DMAAddr(within), min(e.Length-within, left)
		ring.PutRegEntry(f.List, i, e)
		left, within = left-e.Length, 0
	}
}

// SGToPages calls setPage for each page of a mapped list, in order, from an offset in the first entry on
// (ib_sg_to_pages). It ends at a gap in the list, or when setPage fails, which is an error only for the first page. It
// returns the number of entries that fit completely, the bytes that fit of the next one, and the total bytes.
func SGToPages(list []SG, offset, pageSize int, setPage func(page DMAAddr) error) (entries, rest int, length uint64, err error) {
	if len(list) == 0 || offset < 0 || offset > list[0].length || pageSize <= 0 || pageSize&(pageSize-1) != 0 {
		return 0, 0, 0, fmt.Errorf("SG to pages: %w: %d entries, from byte %d on, pages of %d bytes", verbs.ErrInvalid, len(list), offset, pageSize)
	}
	mask := DMAAddr(pageSize) - 1
	var last DMAAddr // end of the previous entry
	pages := 0
	for i, sg := range list {
		addr, end := sg.addr+DMAAddr(offset), sg.addr+DMAAddr(sg.length)
		page := addr &^ mask
		if i > 0 && (last&mask != 0 || page != addr) {
			if last != addr {
				return i, 0, length, nil
			}
			page += mask + 1 // skip the page that the previous entry ends in
		}
		for ; page < end; page += mask + 1 {
			err := setPage(page)
			if err == nil {
				pages++
				continue
			}
			if pages == 0 {
				return 0, 0, 0, err
			}
			taken := max(page, addr)
			return i, int(taken - sg.addr), length + uint64(taken-addr), nil
		}
		length += uint64(end - addr)
		last, offset = end, 0
	}
	return len(list), 0, length, nil
}

// UpdateFastRegKey replaces the low 8 bits of the keys that MR.LKey and MR.RKey return (ib_update_fast_reg_key). As in
// the kernel it changes only this object. The request that registers a fast region passes the new key to the card; see
// verbs.RegMR. A region that is not fast keeps its key on the card, so that requests with the new key fail
// (WCLocProtErr); SGEs of MR.SGE use the card's key.
func UpdateFastRegKey(m *verbs.MR, key uint8) {
	if m == nil {
		return
	}
	in.SetKey(m, key)
}
