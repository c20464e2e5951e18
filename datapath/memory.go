package datapath

import "github.com/roced/roced/datapath/ring"

// memory returns the bytes that an SGE names; nil if the queue pair may not access them.
func (s *Session) memory(sge ring.SGE, pd PD, write bool) []byte {
	place := lkeyPlace(sge.LKey)
	if place >= len(s.mrs) {
		return nil
	}
	mr := s.mrs[place]
	if mr == nil || mr.LKey != sge.LKey || mr.PD != pd || write && !mr.Write {
		return nil
	}
	// An address below the base wraps round to a large offset.
	offset, size := sge.Addr-mr.Base, uint64(len(mr.Memory))
	if offset > size || uint64(sge.Length) > size-offset {
		return nil
	}
	return mr.Memory[offset : offset+uint64(sge.Length) : offset+uint64(sge.Length)]
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
