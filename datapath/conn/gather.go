// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// Access to the memory of send requests. The SGEs stay in their slot until the request is completed. They are checked
// at each use, since the program may have changed them or deregistered the memory.

// listOf returns the SGE list in a request's slot; ok is false if it does not fit into the slot.
func (w *work) listOf(data []byte) (list ring.SGList, ok bool) {
	if w.atomic() {
		data = data[ring.AtomicLen:]
	}
	return ring.ListIn(data, w.SGECount)
}

// measure checks the memory of a request's SGEs, and returns its length, in bytes.
func (r *Requester) measure(w *work, data []byte) (length int, status ib.WCStatus) {
	list, ok := w.listOf(data)
	if uint32(w.SGECount) > r.MaxSendSGE || !ok {
		return 0, ib.WCLocQPOpErr
	}
	for sge, rest, some := list.Next(); some; sge, rest, some = rest.Next() {
		if sge.Length != 0 {
			if _, _, ok := r.QP.Memory(sge, 0, 0, w.wantsAnswer()); !ok {
				return 0, ib.WCLocProtErr
			}
		}
		length += int(sge.Length)
	}
	return length, ib.WCSuccess
}

// gather copies the part of a message that begins at offset into to.
func (r *Requester) gather(w *work, to []byte, offset int) ib.WCStatus {
	if len(to) == 0 {
		return ib.WCSuccess
	}
	data := r.Queue.Data(r.current)
	if w.Flags&ib.SendInline != 0 {
		copy(to, data[offset:])
		return ib.WCSuccess
	}
	return r.walk(w, data, offset, to, false)
}

// spread writes a part of a response, which begins at offset, to the memory of the oldest request.
func (r *Requester) spread(w *work, offset int, from []byte) ib.WCStatus {
	return r.walk(w, r.Queue.Data(0), offset, from, true)
}

// walk copies bytes between a slice and the memory of a request's message, from offset on; with write it copies from
// the slice to the memory. Pieces of a null region are shorter than requested, and read as zeros. The program may have
// made the SGE list shorter since it was measured.
func (r *Requester) walk(w *work, data []byte, offset int, bytes []byte, write bool) ib.WCStatus {
	for list, _ := w.listOf(data); len(bytes) > 0; {
		sge, rest, some := list.Next()
		if !some {
			return ib.WCLocProtErr
		}
		list = rest
		if uint64(offset) >= uint64(sge.Length) {
			offset -= int(sge.Length)
			continue
		}
		for here := min(len(bytes), int(sge.Length)-offset); here > 0; {
			piece, n, ok := r.QP.Memory(sge, offset, here, w.wantsAnswer())
			switch {
			case !ok, n == 0 && !r.QP.Move(sge, offset, bytes[:here], write):
				return ib.WCLocProtErr
			case n == 0:
				n = here
			case write:
				copy(piece, bytes[:n])
			default:
				clear(bytes[copy(bytes[:n], piece):n])
			}
			offset, here, bytes = offset+n, here-n, bytes[n:]
		}
		offset = 0
	}
	return ib.WCSuccess
}
