package datapath

import "github.com/roced/roced/datapath/ring"

// remote is the memory that a packet for a queue pair names by an R_Key; ok is false if that may not be
// accessed in this way. A key is looked up for each packet, so that nothing is touched through one that
// was revoked before. No bytes need no key (IBA 9.7.4.1.2).
func (qp *QP) remote(key ring.RKey, addr uint64, length uint32, access ring.AccessFlags) (memory []byte, ok bool) {
	if length == 0 {
		return nil, true
	}
	if mr := qp.Session.region(ring.LKey(key)); mr != nil {
		if mr.PD != qp.PD || mr.Remote&access != access {
			return nil, false
		}
		return portion(mr.Memory, addr-mr.Base, uint64(length))
	}
	if mw := qp.Session.window(key); mw != nil && mw.admits(key, qp) && mw.access&access == access {
		return portion(mw.memory, addr-mw.base, uint64(length))
	}
	return nil, false
}
