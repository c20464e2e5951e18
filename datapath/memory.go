package datapath

import "github.com/roced/roced/datapath/ring"

// memory finds the bytes that an SGE names, from an offset on: those that lie in one piece, and how many of length
// bytes they are for. ok is false if a queue pair of the PD may not access all of the SGE.
func (s *Session) memory(sge ring.SGE, offset, length int, pd PD, write bool) (piece []byte, n int, ok bool) {
	mr := s.region(sge.LKey)
	if mr == nil {
		return s.mapped(sge, offset, length, write)
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

// move moves bytes of an SGE of a region with signatures, which memory has found.
func (s *Session) move(sge ring.SGE, offset int, bytes []byte, write bool) bool {
	mr := s.region(sge.LKey)
	return mr != nil && mr.move(sge.Addr-mr.Base+uint64(offset), bytes, write)
}

// moveRemote moves bytes of a region with signatures, which remote has found.
func (s *Session) moveRemote(key ring.RKey, addr uint64, bytes []byte, write bool) bool {
	mr := s.region(ring.LKey(key))
	return mr != nil && mr.fast != nil && mr.fast.signed() && mr.move(addr-mr.Base, bytes, write)
}

// mapped finds the bytes of an SGE with the local DMA key. Its address says which region's memory it is of, whatever
// the PD, and what the card may do there.
func (s *Session) mapped(sge ring.SGE, offset, length int, write bool) (piece []byte, n int, ok bool) {
	if sge.LKey != ring.LocalDMALKey {
		return nil, 0, false
	}
	addr := ring.DMAAddr(sge.Addr)
	memory, _, ok := s.dma(addr, uint64(sge.Length))
	if !ok || !addr.Direction().Allows(write) {
		return nil, 0, false
	}
	return memory[offset : offset+length], length, true
}

// dma finds the memory at an address that the local DMA key goes with. A fast region has no memory of its own.
func (s *Session) dma(addr ring.DMAAddr, length uint64) (memory []byte, of *MR, ok bool) {
	k := s.keys.find(addr.Key())
	if k == nil || k.mr == nil || k.mr.fast != nil {
		return nil, nil, false
	}
	memory, ok = portion(k.mr.Memory, addr.Offset(), length)
	return memory, k.mr, ok
}

// portion is length bytes of memory from an offset on. An address below the base has wrapped round to a
// large offset.
func portion(memory []byte, offset, length uint64) (_ []byte, ok bool) {
	size := uint64(len(memory))
	if offset > size || length > size-offset {
		return nil, false
	}
	return memory[offset : offset+length : offset+length], true
}

// pieces is the memory of a scatter/gather list, or of a part of it.
type pieces struct {
	all    [][]byte
	sizes  []int // as the list has them; a piece is shorter if it is nowhere
	length int   // bytes of the whole list
	signed bool  // some are of a region with signatures, and were not found
}

// scatter writes a payload into the pieces from an offset on.
func (p *pieces) scatter(offset int, payload []byte) {
	for i, piece := range p.all {
		if offset >= p.sizes[i] {
			offset -= p.sizes[i]
			continue
		}
		n := min(p.sizes[i]-offset, len(payload))
		copy(piece[min(offset, len(piece)):], payload[:n])
		payload = payload[n:]
		offset = 0
	}
}

// gather fills to with the pieces.
func (p *pieces) gather(to []byte) {
	for i, piece := range p.all {
		here := to[:p.sizes[i]]
		clear(here[copy(here, piece):])
		to = to[len(here):]
	}
}

// first is the first piece; nil if there is none.
func (p *pieces) first() []byte {
	if len(p.all) == 0 {
		return nil
	}
	return p.all[0]
}

func (p *pieces) reset() {
	p.all, p.sizes, p.length = p.all[:0], p.sizes[:0], 0
	p.signed = false
}

func (p *pieces) add(piece []byte, n int) { p.all, p.sizes = append(p.all, piece), append(p.sizes, n) }

// only makes all the pieces one.
func (p *pieces) only(piece []byte) {
	p.reset()
	p.add(piece, len(piece))
	p.length = len(piece)
}

// find finds the memory of a list from an offset on, as many bytes as there are up to a length. It reports whether
// access to all of the list is allowed.
func (p *pieces) find(s *Session, list ring.SGList, pd PD, write bool, offset, length int) bool {
	p.reset()
	for sge, some := list.Next(); some; sge, some = list.Next() {
		size := int(sge.Length)
		p.length += size
		for from := min(offset, size); size > 0; {
			here := min(size-from, length)
			piece, n, ok := s.memory(sge, from, here, pd, write)
			if !ok {
				return false
			}
			if n == 0 && here > 0 {
				p.signed = true
				return false
			}
			if n > 0 {
				p.add(piece, n)
			}
			if from, length = from+n, length-n; n == here {
				break
			}
		}
		offset -= min(offset, size)
	}
	return true
}

// remote is the memory of a PD that a packet for a queue pair names by an R_Key, or its first piece; ok is false if that
// may not be accessed in this way. A key is looked up for each packet, so that nothing is touched through one that
// was revoked before. No bytes need no key (IBA 9.7.4.1.2).
func (s *Session) remote(qp *QP, pd PD, key ring.RKey, addr uint64, length uint32, access ring.AccessFlags) (memory []byte, ok bool) {
	if length == 0 {
		return nil, true
	}
	if mr := s.region(ring.LKey(key)); mr != nil {
		if mr.PD != pd || mr.Remote&access != access {
			return nil, false
		}
		return mr.part(addr-mr.Base, uint64(length))
	}
	if mw := s.window(key); mw != nil && mw.admits(key, qp, pd) && mw.access&access == access {
		return mw.part(addr-mw.base, uint64(length))
	}
	return nil, false
}

// part is the region's memory from an offset on, or its first piece; ok is false if not all of it is the region's.
func (m *MR) part(offset, length uint64) (memory []byte, ok bool) {
	if memory, ok = portion(m.Memory, offset, length); ok || m.fast == nil || !m.fast.holds(offset, length) {
		return memory, ok
	}
	if m.fast.signed() {
		return nil, true
	}
	return m.fast.piece(offset, length), true
}

// moveAll writes a payload to the memory of a list, some of which has signatures, from an offset on.
func (s *Session) moveAll(list ring.SGList, pd PD, offset int, payload []byte) bool {
	for sge, some := list.Next(); some && len(payload) > 0; sge, some = list.Next() {
		size := int(sge.Length)
		for from := offset; from < size && len(payload) > 0; {
			here := min(size-from, len(payload))
			piece, n, ok := s.memory(sge, from, here, pd, true)
			switch {
			case !ok, n == 0 && !s.move(sge, from, payload[:here], true):
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
