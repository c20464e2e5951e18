// SPDX-License-Identifier: Apache-2.0

package region

import (
	"math"
	"sort"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// fast is the state of a fast region, which requests register (IBA 10.6.5). It has a list in memory that the program
// and the card share and, while it is registered, the memory to which that list refers.
//
// If that memory is contiguous, it becomes MR.Memory and is found like that of other regions. Otherwise it consists of
// pieces, whose offsets in the region are consecutive.
//
//	free ── register ──► valid ── invalidate ──► free
type fast struct {
	key       ib.LKey         // the last key; while the region is free, MR.LKey is 0, so that the region is not found
	list      []byte          // see ring.RegEntry
	direction ib.DMADirection // the operations permitted on all of its memory
	pieces    [][]byte
	of        []*MR      // the regions of the pieces
	ends      []uint64   // end offsets of the pieces
	integrity *integrity // state of a region with signatures; nil: it has none
}

// NewFastMR returns a free region with a list that its program writes (ring.RegEntry).
func NewFastMR(key ib.LKey, pd PD, list []byte) *MR {
	f := newFast(key, list)
	return &MR{PD: pd, fast: &f}
}

func newFast(key ib.LKey, list []byte) fast {
	most := len(list) / ring.RegEntryLen
	return fast{key: key, list: list, pieces: make([][]byte, 0, most), of: make([]*MR, 0, most), ends: make([]uint64, 0, most)}
}

// SetFastMR assigns a fast region to its key's index.
func (t *Table) SetFastMR(mr *MR) { t.put(mr.fast.key, mr, nil) }

// holds reports whether length bytes from offset on belong to the region.
func (f *fast) holds(offset, length uint64) bool {
	size := f.length()
	if f.signed() {
		size = f.integrity.size
	}
	return offset <= size && length <= size-offset
}

// length returns the length of all pieces, in bytes.
func (f *fast) length() uint64 {
	if n := len(f.ends); n > 0 {
		return f.ends[n-1]
	}
	return 0
}

// signed reports whether the region is registered with signatures: its bytes are accessed with move, not with piece.
func (f *fast) signed() bool { return f.integrity != nil && f.integrity.on }

// piece returns the first contiguous piece of a range of the region.
func (f *fast) piece(offset, length uint64) []byte {
	i := sort.Search(len(f.ends), func(i int) bool { return offset < f.ends[i] })
	if i == len(f.ends) {
		return nil
	}
	piece := f.pieces[i]
	from := uint64(len(piece)) - (f.ends[i] - offset)
	to := min(from+length, uint64(len(piece)))
	return piece[from:to:to]
}

// regAccess are the access flags that a fast region may have.
const regAccess = ib.AccessLocalWrite | ib.AccessRemoteWrite | ib.AccessRemoteRead | ib.AccessRemoteAtomic |
	ib.AccessMWBind | ib.AccessZeroBased | ib.AccessOptionalRange

// regRemote are the flags of regAccess that are stored in MR.Remote.
const regRemote = ib.AccessRemoteWrite | ib.AccessRemoteRead | ib.AccessRemoteAtomic | ib.AccessMWBind

// Register registers a fast region for the memory in its list, under a new key. The region must be free.
func (t *Table) Register(pd PD, key ib.RKey, base uint64, r ring.Reg, signed bool) ib.WCStatus {
	k := t.find(ib.LKey(key))
	if k == nil || k.mr == nil || k.mr.fast == nil || signed && k.mr.fast.integrity == nil {
		return ib.WCMWBindErr
	}
	mr := k.mr
	write := r.Access&ib.AccessLocalWrite != 0
	changes := r.Access & (ib.AccessRemoteWrite | ib.AccessRemoteAtomic)
	if r.Access&ib.AccessZeroBased != 0 {
		base = 0
	}
	switch {
	case mr.PD != pd, mr.LKey != 0, r.Access&^regAccess != 0, changes != 0 && !write, base > math.MaxUint64-r.Length,
		signed && (r.Length > ring.MaxMessage || base > math.MaxUint64-ring.MaxMessage):
		return ib.WCMWBindErr
	case !mr.fast.translate(t, r), signed && !mr.fast.integrity.prepare(t, mr.fast, r):
		mr.fast.forget()
		return ib.WCMWBindErr
	}
	mr.LKey, mr.fast.key, mr.Base = ib.LKey(key), ib.LKey(key), base
	mr.Write, mr.Remote = write, r.Access&regRemote
	if f := mr.fast; len(f.pieces) == 1 && !signed && f.direction == ib.DMABidirectional {
		mr.Memory = f.pieces[0]
	}
	return ib.WCSuccess
}

// translate finds the memory to which the list refers, and checks that it permits the requested access. The program can
// change the list at any time, so each entry is read only once.
func (f *fast) translate(t *Table, r ring.Reg) bool {
	f.direction = ib.DMABidirectional
	size, run := uint64(0), ring.RegEntry{} // run is the last piece
	if r.Count == 0 || uint64(r.Count) > uint64(len(f.list)/ring.RegEntryLen) {
		return false
	}
	for i := range int(r.Count) {
		entry := ring.GetRegEntry(f.list, i)
		memory, of, ok := t.dma(entry.Addr, entry.Length)
		if !ok || entry.Length == 0 || !f.narrow(entry.Addr.Direction()) {
			return false
		}
		if size += entry.Length; entry.Addr == run.Addr+ib.DMAAddr(run.Length) {
			run.Length += entry.Length
			memory, _, _ = t.dma(run.Addr, run.Length)
			f.pieces[len(f.pieces)-1], f.ends[len(f.ends)-1] = memory, size
			continue
		}
		run = entry
		f.pieces, f.of, f.ends = append(f.pieces, memory), append(f.of, of), append(f.ends, size)
		of.fasts++
	}
	reads := r.Access&(ib.AccessRemoteRead|ib.AccessRemoteAtomic) != 0
	return size == r.Length &&
		(r.Access&ib.AccessLocalWrite == 0 || f.direction.Allows(true)) && (!reads || f.direction.Allows(false))
}

// narrow restricts the permitted operations to those of one more piece. It returns false if no operation is permitted
// on all pieces.
func (f *fast) narrow(d ib.DMADirection) bool {
	if f.direction == ib.DMABidirectional {
		f.direction = d
	}
	return f.direction != ib.DMANone && (d == f.direction || d == ib.DMABidirectional)
}

// forget discards the pieces.
func (f *fast) forget() {
	for _, of := range f.of {
		of.fasts--
	}
	clear(f.pieces)
	clear(f.of)
	f.pieces, f.of, f.ends = f.pieces[:0], f.of[:0], f.ends[:0]
	if f.integrity != nil {
		f.integrity.forget()
	}
}

// Free revokes the key of a fast region. It returns false, without any effect, while windows are bound to the region.
func (m *MR) Free() bool {
	if m.windows > 0 {
		return false
	}
	m.LKey, m.Memory = 0, nil
	m.fast.forget()
	return true
}
