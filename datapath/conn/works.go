// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// work is a send request that has been taken from the send queue and is not completed. Until it is completed its slot
// is not reused, because a retransmission gathers the payload again from the program's memory. The fields of the
// request are copied and checked once, and not read from the slot again.
type work struct {
	ring.SendConnected
	operands ring.Atomic
	length   uint32      // length of the message, in bytes
	packets  uint32      // number of PSNs: for a READ those of its response
	parts    parts       // parts of a READ's response that are requested separately
	first    wire.PSN    // its first PSN
	answered uint32      // number of packets received of a READ's or atomic's response
	status   ib.WCStatus // the error with which it fails, if it cannot be executed
}

// wantsAnswer reports whether the peer's response contains data: whether the request is a READ or an atomic.
func (w *work) wantsAnswer() bool {
	return w.Opcode.Means().Is(wire.MeansAnswered)
}

// local reports whether the request is executed by this card, without packets.
func (w *work) local() bool { return w.Opcode.Local() }

func (w *work) atomic() bool {
	return w.Opcode.Means().Is(wire.MeansAtomic)
}

// end returns the PSN after the request's last one.
func (w *work) end() wire.PSN { return w.first.Plus(w.packets) }

// holds reports whether a PSN belongs to the request.
func (w *work) holds(psn wire.PSN) bool { return uint32(psn-w.first)&uint32(wire.PSNMask) < w.packets }

// partLeft returns the number of packets from a place to the end of its part, or of the request.
func (w *work) partLeft(place uint32) uint32 { return min(w.packets-place, w.parts.left(place)) }

// askedBefore returns the number of response packets that are requested before a PSN and have not arrived.
func (w *work) askedBefore(psn wire.PSN) int {
	// Not relative to first, which may be half of all PSNs away, so that Ahead would wrap around.
	return max(0, min(psn.Ahead(w.missing()), int(w.packets-w.answered)))
}

// outstanding returns the number of request packets of a READ or an atomic that were sent with PSNs below newest and
// are not completely answered.
func (w *work) outstanding(newest wire.PSN) int {
	asked := uint32(w.askedBefore(newest))
	switch {
	case asked == 0 || !w.wantsAnswer():
		return 0
	case w.packets <= w.parts.size && w.parts.begin == 0: // the usual case; a division is slow
		return 1
	}
	return w.parts.count(w.answered, w.answered+asked)
}

// asking returns the number of READs and atomics to which a number of outstanding request packets belong.
func (w *works) asking(reads int, newest wire.PSN) (n int) {
	for i := uint32(0); i < w.count && reads > 0; i++ {
		if outstanding := w.at(i).outstanding(newest); outstanding > 0 {
			n, reads = n+1, reads-outstanding
		}
	}
	return n
}

// missing returns the first PSN of a READ's or atomic's response that has not arrived.
func (w *work) missing() wire.PSN { return w.first.Plus(w.answered) }

// works is a ring of requests, the oldest first. It grows as needed.
type works struct {
	slots []work // the length is a power of two
	head  uint32
	count uint32
}

func (w *works) at(i uint32) *work { return &w.slots[(w.head+i)&uint32(len(w.slots)-1)] }

// add appends an empty request.
func (w *works) add() *work {
	if int(w.count) == len(w.slots) {
		more := make([]work, max(4, 2*len(w.slots)))
		for i := range w.count {
			more[i] = *w.at(i)
		}
		w.slots, w.head = more, 0
	}
	w.count++
	one := w.at(w.count - 1)
	*one = work{}
	return one
}

// drop removes the oldest request.
func (w *works) drop() {
	w.head++
	w.count--
}

// find returns the index of the request that includes the PSN. If there is none, it returns the index of the first
// request without PSNs, which is a local one or one that cannot be executed, or otherwise the count.
func (w *works) find(psn wire.PSN) uint32 {
	for i := range w.count {
		if one := w.at(i); one.packets == 0 || one.holds(psn) {
			return i
		}
	}
	return w.count
}
