package datapath

import "github.com/roced/roced/datapath/ring"

// memory returns the bytes that an SGE names; nil if the queue pair may not access them.
func (s *Session) memory(sge ring.SGE, pd PD, write bool) []byte {
	mr := s.region(sge.LKey)
	if mr == nil || mr.PD != pd || write && !mr.Write {
		return nil
	}
	memory, _ := portion(mr.Memory, sge.Addr-mr.Base, uint64(sge.Length))
	return memory
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

// resolve finds the memory of a list of SGEs. It reports whether access to all of it is allowed.
func (s *Session) resolve(pieces [][]byte, sges []ring.SGE, pd PD, write bool) bool {
	for i, sge := range sges {
		pieces[i] = s.memory(sge, pd, write)
		if pieces[i] == nil && sge.Length != 0 {
			return false
		}
	}
	return true
}

// findMemory finds the memory of a send request's SGEs. They follow the request in its slot.
func (d *departure) findMemory(qp *QP, data []byte) (length int, status ring.WCStatus) {
	s := &d.send
	if uint32(s.SGECount) > qp.MaxSendSGE || int(s.SGECount)*ring.SGELen > len(data) {
		return 0, ring.WCLocQPOpErr
	}
	for i := range int(s.SGECount) {
		sge := ring.GetSGE(data[i*ring.SGELen:])
		piece := qp.Session.memory(sge, qp.PD, false)
		if piece == nil && sge.Length != 0 {
			return 0, ring.WCLocProtErr
		}
		d.pieces[i] = piece
		length += len(piece)
	}
	return length, ring.WCSuccess
}
