package region

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// Find finds the bytes that an SGE names, from an offset on: those that lie in one piece, and how many of length
// bytes they are for. ok is false if a queue pair of the PD may not access all of the SGE.
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

// whole is the memory of an SGE that lies in one piece in a region with memory of its own, as nearly all do; nil if
// Find has to look, or the SGE may not be accessed. The SGE is not empty.
func (t *Table) whole(sge ib.SGE, pd PD, write bool) []byte {
	mr := t.region(sge.LKey)
	if mr == nil || mr.PD != pd || write && !mr.Write {
		return nil
	}
	memory, _ := portion(mr.Memory, sge.Addr-mr.Base, uint64(sge.Length))
	return memory
}

// Move moves bytes of an SGE of a region with signatures, which Find has found.
func (t *Table) Move(sge ib.SGE, offset int, bytes []byte, write bool) bool {
	mr := t.region(sge.LKey)
	return mr != nil && mr.move(sge.Addr-mr.Base+uint64(offset), bytes, write)
}

// MoveRemote moves bytes of a region with signatures, which Remote has found.
func (t *Table) MoveRemote(key ib.RKey, addr uint64, bytes []byte, write bool) bool {
	mr := t.region(ib.LKey(key))
	return mr != nil && mr.fast != nil && mr.fast.signed() && mr.move(addr-mr.Base, bytes, write)
}

// mapped finds the bytes of an SGE with the local DMA key. Its address says which region's memory it is of, whatever
// the PD, and what the card may do there.
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

// dma finds the memory at an address that the local DMA key goes with. A fast region has no memory of its own.
func (t *Table) dma(addr ib.DMAAddr, length uint64) (memory []byte, of *MR, ok bool) {
	k := t.find(addr.Key())
	if k == nil || k.mr == nil || k.mr.fast != nil {
		return nil, nil, false
	}
	memory, ok = portion(k.mr.Memory, addr.Offset(), length)
	return memory, k.mr, ok
}

// Remote is the memory of a PD that a packet for a queue pair names by an R_Key, or its first piece; ok is false if that
// may not be accessed in this way. A key is looked up for each packet, so that nothing is touched through one that
// was revoked before. No bytes need no key (IBA 9.7.4.1.2).
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

// MoveAll writes a payload to the memory of a list, some of which has signatures, from an offset on.
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
