package conn

import "github.com/roced/roced/datapath/ring"

// The memory of a connected queue pair's requests. Its SGEs stay in their slot until the request is
// completed; they are checked whenever a part of it is used, since the program may have changed them, and
// may have taken the memory away.

// listOf is a request's list in its slot; ok is false if the slot has no room for it.
func (w *work) listOf(data []byte) (list ring.SGList, ok bool) {
	if w.atomic() {
		data = data[ring.AtomicLen:]
	}
	return ring.ListIn(data, w.SGECount)
}

// measure finds the memory of a request's SGEs, and adds up its length, in bytes.
func (r *Requester) measure(w *work, data []byte) (length int, status ring.WCStatus) {
	list, ok := w.listOf(data)
	if uint32(w.SGECount) > r.MaxSendSGE || !ok {
		return 0, ring.WCLocQPOpErr
	}
	for sge, some := list.Next(); some; sge, some = list.Next() {
		if sge.Length != 0 {
			if _, _, ok := r.QP.Memory(sge, 0, 0, w.wantsAnswer()); !ok {
				return 0, ring.WCLocProtErr
			}
		}
		length += int(sge.Length)
	}
	return length, ring.WCSuccess
}

// gather fills to with the part of a message that begins at an offset.
func (r *Requester) gather(w *work, to []byte, offset int) ring.WCStatus {
	if len(to) == 0 {
		return ring.WCSuccess
	}
	data := r.Queue.Data(r.current)
	if w.Flags&ring.SendInline != 0 {
		copy(to, data[offset:])
		return ring.WCSuccess
	}
	return r.walk(w, data, offset, len(to), func(piece []byte, n int) {
		clear(to[copy(to, piece):n])
		to = to[n:]
	})
}

// spread writes a part of an answer to the memory of the oldest request.
func (r *Requester) spread(w *work, offset int, from []byte) ring.WCStatus {
	return r.walk(w, r.Queue.Data(0), offset, len(from), func(piece []byte, n int) {
		copy(piece, from)
		from = from[n:]
	})
}

// walk visits the memory of length bytes of a request's message from an offset on: pieces, and how many of the bytes
// each is for. One of a null region is shorter. The list may be shorter than when it was measured.
func (r *Requester) walk(w *work, data []byte, offset, length int, visit func(piece []byte, n int)) ring.WCStatus {
	for list, _ := w.listOf(data); length > 0; {
		sge, some := list.Next()
		if !some {
			return ring.WCLocProtErr
		}
		if uint64(offset) >= uint64(sge.Length) {
			offset -= int(sge.Length)
			continue
		}
		for here := min(length, int(sge.Length)-offset); here > 0; {
			piece, n, ok := r.QP.Memory(sge, offset, here, w.wantsAnswer())
			if !ok {
				return ring.WCLocProtErr
			}
			visit(piece, n)
			offset, length, here = offset+n, length-n, here-n
		}
		offset = 0
	}
	return ring.WCSuccess
}
