package datapath

import "github.com/roced/roced/datapath/ring"

// memory returns the bytes that an SGE names; nil if the queue pair may not access them.
func (s *Session) memory(sge ring.SGE, pd PD, write bool) []byte {
	mr := s.region(sge.LKey)
	if mr == nil || mr.PD != pd || write && !mr.Write {
		return nil
	}
	memory, ok := portion(mr.Memory, sge.Addr-mr.Base, uint64(sge.Length))
	if !ok && mr.Null {
		return nowhere
	}
	return memory
}

// nowhere is the memory of a null region: what an SGE names beyond its end is read as zeros, and not written.
var nowhere = []byte{}

// portion is length bytes of memory from an offset on. An address below the base has wrapped round to a
// large offset.
func portion(memory []byte, offset, length uint64) (_ []byte, ok bool) {
	size := uint64(len(memory))
	if offset > size || length > size-offset {
		return nil, false
	}
	return memory[offset : offset+length : offset+length], true
}

// pieces is the memory of a scatter/gather list.
type pieces struct {
	all    [ring.MaxSGE][]byte
	sizes  [ring.MaxSGE]int // as the list has them; a piece is shorter if it is nowhere
	count  int
	length int // bytes
}

// list gives the pieces that were found.
func (p *pieces) list() [][]byte { return p.all[:p.count] }

// scatter writes a payload into the pieces from an offset on.
func (p *pieces) scatter(offset int, payload []byte) {
	for i, piece := range p.list() {
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
	for i, piece := range p.list() {
		here := to[:p.sizes[i]]
		clear(here[copy(here, piece):])
		to = to[len(here):]
	}
}

// only makes all the pieces one.
func (p *pieces) only(piece []byte) {
	p.all[0], p.sizes[0], p.count, p.length = piece, len(piece), 1, len(piece)
}

// find finds the memory of a list. It reports whether access to all of it is allowed.
func (p *pieces) find(s *Session, list ring.SGList, pd PD, write bool) bool {
	p.count, p.length = 0, 0
	for sge, ok := list.Next(); ok; sge, ok = list.Next() {
		piece := s.memory(sge, pd, write)
		if piece == nil && sge.Length != 0 {
			return false
		}
		p.all[p.count], p.sizes[p.count] = piece, int(sge.Length)
		p.count++
		p.length += int(sge.Length)
	}
	return true
}

// remote is the memory of a PD that a packet for a queue pair names by an R_Key; ok is false if that may not be
// accessed in this way. A key is looked up for each packet, so that nothing is touched through one that
// was revoked before. No bytes need no key (IBA 9.7.4.1.2).
func (s *Session) remote(qp *QP, pd PD, key ring.RKey, addr uint64, length uint32, access ring.AccessFlags) (memory []byte, ok bool) {
	if length == 0 {
		return nil, true
	}
	if mr := s.region(ring.LKey(key)); mr != nil {
		if mr.PD != pd || mr.Remote&access != access {
			return nil, false
		}
		return portion(mr.Memory, addr-mr.Base, uint64(length))
	}
	if mw := s.window(key); mw != nil && mw.admits(key, qp, pd) && mw.access&access == access {
		return portion(mw.memory, addr-mw.base, uint64(length))
	}
	return nil, false
}
