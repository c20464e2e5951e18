package verbs

import (
	"fmt"
	"sync"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// fastMR is what a fast region has besides: the list that the card reads when it registers the region.
type fastMR struct {
	kind MRType
	most int

	mu     sync.Mutex
	list   []byte
	count  int
	length uint64
	meta   int // entries of the list of fields
}

// AllocFastMR makes a memory region without memory, of up to so many entries (ib_alloc_mr). MapSG says what it
// consists of, a request (WRRegMR) registers it, and one that invalidates its key (WRLocalInv, or the peer's WRSendWithInv)
// frees it for the next:
//
//	free ── MapSG, WRRegMR ──► valid ── WRLocalInv, the peer's WRSendWithInv ──► free
//
// An access by the key of a region that is free fails as by one that nobody has (WCLocProtErr, WCRemAccessErr). ErrInvalid
// for more entries than DeviceAttr.MaxFastRegPageListLen.
func (p *PD) AllocFastMR(kind MRType, entries int) (*MR, error) {
	if p == nil {
		return nil, fmt.Errorf("allocate fast MR: %w", errNil)
	}
	grant, err := provider.Do(p.ctx.provider, provider.AllocFastMR, provider.AllocFastMRRequest{PD: p.handle, Type: kind, Entries: entries})
	if err != nil {
		return nil, fmt.Errorf("allocate fast MR: %w", err)
	}
	fast := &fastMR{kind: kind, most: entries, list: grant.Memory}
	grant.Memory = nil
	mr := p.ctx.newMR(grant, 0)
	mr.fast = fast
	p.ctx.keep(mr)
	return mr, nil
}

// MinPageSize is the least size of pages, in bytes; the others are powers of two.
const MinPageSize = 4096

// MapSG has a fast region consist of as much of a mapped list as it can, from an offset in the first entry on
// (ib_map_mr_sg). It returns how many entries it took whole, and if the next one fits in part, how many bytes of it;
// the rest is for another region. The region begins at the address IOVA gives, which has the first byte's place in its page.
//
// Of a region of MRTypeMemReg, only the first entry may begin and only the last one end within a page, except where one
// continues the one before: the list is taken up to where that ends. The page size does not count for MRTypeSGGaps.
//
// The list belongs to the card from the posting of the request to its completion.
func (m *MR) MapSG(list []SG, offset, pageSize int) (entries, rest int, err error) {
	if m == nil {
		return 0, 0, fmt.Errorf("map SG: %w", errNil)
	}
	f := m.fast
	switch {
	case f == nil:
		return 0, 0, fmt.Errorf("map SG: %w: the region is not a fast one; PD.AllocFastMR makes those", ErrInvalid)
	case len(list) == 0 || offset < 0 || offset > list[0].length:
		return 0, 0, fmt.Errorf("map SG: %w: %d entries, from byte %d on", ErrInvalid, len(list), offset)
	case f.kind == MRTypeMemReg && (pageSize < MinPageSize || pageSize&(pageSize-1) != 0):
		return 0, 0, fmt.Errorf("map SG: %w: pages of %d bytes; a power of two, from %d on", ErrInvalid, pageSize, MinPageSize)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.meta = 0
	if f.kind == MRTypeMemReg {
		entries, rest, err = m.mapPages(list, offset, pageSize)
	} else {
		entries, rest = f.mapPieces(list, offset)
	}
	if err != nil {
		f.count, f.length = 0, 0
		return 0, 0, fmt.Errorf("map SG: %w", err)
	}
	m.now.Store(&region{iova: (list[0].addr + DMAAddr(offset)).Offset()})
	return entries, rest, nil
}

// mapPieces puts the entries into the list as they are.
func (f *fastMR) mapPieces(list []SG, offset int) (entries, rest int) {
	f.count, f.length = 0, 0
	for _, sg := range list {
		if f.count == f.most {
			break
		}
		if length := uint64(sg.length - offset); length > 0 {
			f.put(sg.addr+DMAAddr(offset), length)
		}
		entries, offset = entries+1, 0
	}
	return entries, 0
}

func (f *fastMR) put(addr DMAAddr, length uint64) {
	ring.PutRegEntry(f.list, f.count, ring.RegEntry{Addr: addr, Length: length})
	f.count++
	f.length += length
}

// mapPages puts the pages of the entries into the list.
func (m *MR) mapPages(list []SG, offset, pageSize int) (entries, rest int, err error) {
	f := m.fast
	f.count = 0
	first := list[0].addr + DMAAddr(offset)
	entries, rest, f.length, err = SGToPages(list, offset, pageSize, func(page DMAAddr) error {
		if f.count == f.most {
			return fmt.Errorf("%w: the region has %d entries", ErrLimit, f.most)
		}
		ring.PutRegEntry(f.list, f.count, ring.RegEntry{Addr: page, Length: uint64(pageSize)})
		f.count++
		return nil
	})
	if err == nil {
		f.trim(first, uint64(pageSize))
	}
	return entries, rest, err
}

// trim cuts what of the first and the last page is not the region's.
func (f *fastMR) trim(first DMAAddr, pageSize uint64) {
	within := uint64(first) & (pageSize - 1)
	for i, left := 0, f.length; i < f.count; i++ {
		e := ring.GetRegEntry(f.list, i)
		e.Addr, e.Length = e.Addr+DMAAddr(within), min(e.Length-within, left)
		ring.PutRegEntry(f.list, i, e)
		left, within = left-e.Length, 0
	}
}

// SGToPages gives the pages of a mapped list, in order, from an offset in the first entry on (ib_sg_to_pages). It
// ends where the list has a gap, or where setPage fails, which is an error only for the first page. entries are those that
// were taken whole, rest the bytes that were taken of the next one, length all bytes.
func SGToPages(list []SG, offset, pageSize int, setPage func(page DMAAddr) error) (entries, rest int, length uint64, err error) {
	if len(list) == 0 || offset < 0 || offset > list[0].length || pageSize <= 0 || pageSize&(pageSize-1) != 0 {
		return 0, 0, 0, fmt.Errorf("SG to pages: %w: %d entries, from byte %d on, pages of %d bytes", ErrInvalid, len(list), offset, pageSize)
	}
	mask := DMAAddr(pageSize) - 1
	var last DMAAddr // where the entry before ends
	pages := 0
	for i, sg := range list {
		addr, end := sg.addr+DMAAddr(offset), sg.addr+DMAAddr(sg.length)
		page := addr &^ mask
		if i > 0 && (last&mask != 0 || page != addr) {
			if last != addr {
				return i, 0, length, nil
			}
			page += mask + 1 // the one that the entry before ends in is there
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

// Length is how many bytes MapSG has taken; of a region that is not fast, how many it has.
func (m *MR) Length() uint64 {
	if m == nil {
		return 0
	}
	if f := m.fast; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.length
	}
	return uint64(len(m.Bytes()))
}

// RegMR is a fast registration (ib_reg_wr): of what MapSG has mapped, under a key, of which UpdateFastRegKey
// changed the low 8 bits. It waits for all requests before it, and those behind it find the region as it says. It fails
// with WCMWBindErr if the region is valid already, is of another PD than the queue pair, or consists of memory that is
// not mapped or not in a direction that the access flags allow.
type RegMR struct {
	MR     *MR
	Key    RKey // MR.RKey
	Access AccessFlags
	Sig    *SigAttrs // of WRRegMRIntegrity
}

func (r *RegMR) check(pd *PD, signed bool) error {
	switch {
	case r == nil || r.MR == nil || r.MR.fast == nil:
		return fmt.Errorf("%w: a fast registration needs SendWR.Reg, with a region of PD.AllocFastMR", ErrInvalid)
	case signed && (r.Sig == nil || r.MR.fast.kind != MRTypeIntegrity):
		return fmt.Errorf("%w: a fast registration with signatures needs RegMR.Sig, and a region of PD.AllocIntegrityMR", ErrInvalid)
	case r.MR.ctx != pd.ctx:
		return fmt.Errorf("%w: the region belongs to another context", ErrInvalid)
	case (r.Key^RKey(r.MR.lkey))&^keyMask != 0:
		return fmt.Errorf("%w: key 0x%x for the region of 0x%x; only the low 8 bits are free to choose", ErrInvalid, uint32(r.Key), uint32(r.MR.lkey))
	case r.MR.Length() == 0:
		return fmt.Errorf("%w: the region is of no memory; MR.MapSG first", ErrInvalid)
	}
	return nil
}

// put writes the registration into the request's slot.
func (r *RegMR) put(data []byte, signed bool) {
	f := r.MR.fast
	f.mu.Lock()
	defer f.mu.Unlock()
	if signed {
		f.putSig(r.Sig)
	}
	ring.PutReg(data, ring.Reg{Length: f.length, Access: r.Access, Count: uint32(f.count)})
}
