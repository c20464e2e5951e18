// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// Find returns the first contiguous piece of the memory of an SGE from offset on. n is the number of bytes, of the
// length requested ones, that it covers. ok is false if a queue pair of the PD is not permitted to access all of the
// SGE. For a null region, piece is nil. For a region with signatures, piece is nil and n is 0: the caller must use
// Move.
func (t *Table) Find(sge ib.SGE, offset, length int, pd PD, write bool) (piece []byte, n int, ok bool) {
	mr := t.region(sge.LKey)
	if mr == nil {
		return t.mapped(sge, offset, length, write)
	}
	if mr.PD != pd || write && !mr.Write {
		return nil, 0, false
	}
	from := sge.Addr - mr.Base
	if memory, ok := portion(mr.Memory, from, uint64(sge.Length)); ok {
		return memory[offset : offset+length], length, true
	}
	if mr.Null {
		return nil, length, true
	}
	if mr.fast == nil || !mr.fast.holds(from, uint64(sge.Length)) || !mr.fast.direction.Allows(write) {
		return nil, 0, false
	}
	if mr.fast.signed() {
		return nil, 0, true
	}
	piece = mr.fast.piece(from+uint64(offset), uint64(length))
	return piece, len(piece), true
}

// whole returns the memory of an SGE if it is contiguous in MR.Memory, which is the usual case. It returns nil if the
// caller must use Find, or the access is not permitted. The SGE must not be empty.
func (t *Table) whole(sge ib.SGE, pd PD, write bool) []byte {
	mr := t.region(sge.LKey)
	if mr == nil || mr.PD != pd || write && !mr.Write {
		return nil
	}
	memory, _ := portion(mr.Memory, sge.Addr-mr.Base, uint64(sge.Length))
	return memory
}

// Move copies bytes from an SGE, or with write to it, in a region with signatures. Find has permitted the access
// before.
func (t *Table) Move(sge ib.SGE, offset int, bytes []byte, write bool) bool {
	mr := t.region(sge.LKey)
	return mr != nil && mr.move(sge.Addr-mr.Base+uint64(offset), bytes, write)
}

// MoveRemote is Move for an R_Key. Remote has permitted the access before.
func (t *Table) MoveRemote(key ib.RKey, addr uint64, bytes []byte, write bool) bool {
	mr := t.region(ib.LKey(key))
	return mr != nil && mr.fast != nil && mr.fast.signed() && mr.move(addr-mr.Base, bytes, write)
}

// mapped is Find for an SGE with the local DMA key, whose address contains the region and the permitted operations. The
// PD is not checked.
func (t *Table) mapped(sge ib.SGE, offset, length int, write bool) (piece []byte, n int, ok bool) {
	if sge.LKey != ib.LocalDMALKey {
		return nil, 0, false
	}
	addr := ib.DMAAddr(sge.Addr)
	memory, _, ok := t.dma(addr, uint64(sge.Length))
	if !ok || !addr.Direction().Allows(write) {
		return nil, 0, false
	}
	return memory[offset : offset+length], length, true
}

// dma returns the memory and the region of an address for the local DMA key. ok is false for a fast region, which has
// no memory of its own.
func (t *Table) dma(addr ib.DMAAddr, length uint64) (memory []byte, of *MR, ok bool) {
	k := t.find(addr.Key())
	if k == nil || k.mr == nil || k.mr.fast != nil {
		return nil, nil, false
	}
	memory, ok = portion(k.mr.Memory, addr.Offset(), length)
	return memory, k.mr, ok
}

// Remote returns the first contiguous piece of the memory that a packet for a queue pair addresses by an R_Key; ok is
// false if the access is not permitted. It is called for each packet, so that a key that was revoked during a message
// grants no further access. An access of length 0 needs no valid key (IBA 9.7.4.1.2).
func (t *Table) Remote(holder any, pd PD, key ib.RKey, addr uint64, length uint32, access ib.AccessFlags) (memory []byte, ok bool) {
	if length == 0 {
		return nil, true
	}
	if mr := t.region(ib.LKey(key)); mr != nil {
		if mr.PD != pd || mr.Remote&access != access {
			return nil, false
		}
		return mr.part(addr-mr.Base, uint64(length))
	}
	if mw := t.window(key); mw != nil && mw.admits(key, holder, pd) && mw.access&access == access {
		return mw.part(addr-mw.base, uint64(length))
	}
	return nil, false
}

// MoveAll writes a payload to the memory of an SGE list that includes regions with signatures, from offset on. It
// returns false if the access is not permitted.
func (t *Table) MoveAll(list ring.SGList, pd PD, offset int, payload []byte) bool {
	for sge, rest, some := list.Next(); some && len(payload) > 0; sge, rest, some = rest.Next() {
		size := int(sge.Length)
		for from := offset; from < size && len(payload) > 0; {
			here := min(size-from, len(payload))
			piece, n, ok := t.Find(sge, from, here, pd, true)
			switch {
			case !ok, n == 0 && !t.Move(sge, from, payload[:here], true):
				return false
			case n == 0:
				n = here
			default:
				copy(piece, payload[:n])
			}
			from, payload = from+n, payload[n:]
		}
		offset -= min(offset, size)
	}
	return true
}
