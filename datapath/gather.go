package datapath

import "github.com/roced/roced/datapath/ring"

// The memory of a connected queue pair's requests. Its SGEs stay in their slot until the request is
// completed; they are checked whenever a part of it is used, since the program may have changed them, and
// may have taken the memory away.

// sges are a request's SGEs in its slot, each of which is to be read once.
func (qp *QP) sges(w *work, data []byte) []byte {
	if w.atomic() {
		data = data[ring.AtomicLen:]
	}
	return data[:min(int(w.SGECount)*ring.SGELen, len(data))]
}

// measure finds the memory of a request's SGEs, and adds up its length, in bytes.
func (qp *QP) measure(w *work, data []byte) (length int, status ring.WCStatus) {
	list := qp.sges(w, data)
	if uint32(w.SGECount) > qp.MaxSendSGE || len(list) < int(w.SGECount)*ring.SGELen {
		return 0, ring.WCLocQPOpErr
	}
	for ; len(list) > 0; list = list[ring.SGELen:] {
		sge := ring.GetSGE(list)
		if sge.Length != 0 && qp.Session.memory(sge, qp.PD, w.wantsAnswer()) == nil {
			return 0, ring.WCLocProtErr
		}
		length += int(sge.Length)
	}
	return length, ring.WCSuccess
}

// gather fills to with the part of a message that begins at an offset.
func (qp *QP) gather(w *work, to []byte, offset int) ring.WCStatus {
	if len(to) == 0 {
		return ring.WCSuccess
	}
	data := qp.Send.Data(qp.current)
	if w.Flags&ring.SendInline != 0 {
		copy(to, data[offset:])
		return ring.WCSuccess
	}
	return qp.walk(w, data, offset, len(to), func(piece []byte) { to = to[copy(to, piece):] })
}

// spread writes a part of an answer to the memory of the oldest request.
func (qp *QP) spread(w *work, offset int, from []byte) ring.WCStatus {
	return qp.walk(w, qp.Send.Data(0), offset, len(from), func(piece []byte) { from = from[copy(piece, from):] })
}

// walk visits the memory of length bytes of a request's SGEs from an offset on.
func (qp *QP) walk(w *work, data []byte, offset, length int, visit func(piece []byte)) ring.WCStatus {
	for list := qp.sges(w, data); length > 0; list = list[ring.SGELen:] {
		if len(list) == 0 {
			return ring.WCLocProtErr // they were longer when they were measured
		}
		sge := ring.GetSGE(list)
		if uint64(offset) >= uint64(sge.Length) {
			offset -= int(sge.Length)
			continue
		}
		memory := qp.Session.memory(sge, qp.PD, w.wantsAnswer())
		if memory == nil {
			return ring.WCLocProtErr
		}
		n := min(length, len(memory)-offset)
		visit(memory[offset : offset+n])
		offset, length = 0, length-n
	}
	return ring.WCSuccess
}
