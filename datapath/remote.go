package datapath

import "github.com/roced/roced/datapath/ring"

// remote is the memory that a packet for a queue pair names by an R_Key; ok is false if that may not be
// accessed in this way. A key is looked up for each packet, so that nothing is touched through one that
// was revoked before. No bytes need no key (IBA 9.7.4.1.2).
func (qp *QP) remote(key ring.RKey, addr uint64, length uint32, access ring.AccessFlags) (memory []byte, ok bool) {
	if length == 0 {
		return nil, true
	}
	s, place := qp.Session, lkeyPlace(ring.LKey(key))
	if place < len(s.mrs) && s.mrs[place] != nil {
		if mr := s.mrs[place]; mr.LKey == ring.LKey(key) && mr.PD == qp.PD && mr.Remote&access == access {
			return portion(mr.Memory, addr-mr.Base, uint64(length))
		}
		return nil, false
	}
	if place < len(s.mws) && s.mws[place] != nil {
		if mw := s.mws[place]; mw.admits(key, qp) && mw.access&access == access {
			return portion(mw.memory, addr-mw.base, uint64(length))
		}
	}
	return nil, false
}

// portion is length bytes of memory from an offset on. An address below the base has wrapped round to a large
// offset.
func portion(memory []byte, offset, length uint64) (_ []byte, ok bool) {
	size := uint64(len(memory))
	if offset > size || length > size-offset {
		return nil, false
	}
	return memory[offset : offset+length : offset+length], true
}
