package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// work is a send request of a connected queue pair that has been taken and not completed. Its slot is
// the card's until then: what is sent again is gathered again from the program's memory. Only what the
// check of the request has found is kept, and not read again.
type work struct {
	ring.SendConnected
	operands ring.Atomic
	length   uint32      // bytes of the message
	packets  uint32      // PSNs that it takes: of a READ those of its response
	parts    parts       // that a request packet is for
	first    wire.PSN    // the first of them
	answered uint32      // packets of a READ's or atomic's response that are here
	status   ib.WCStatus // why it cannot be carried out
}

// wantsAnswer says that the peer answers the request with data.
func (w *work) wantsAnswer() bool {
	return w.Opcode.Means().Is(wire.MeansAnswered)
}

// local says that the request is carried out here, and has no packets.
func (w *work) local() bool { return w.Opcode.Local() }

func (w *work) atomic() bool {
	return w.Opcode.Means().Is(wire.MeansAtomic)
}

// end is the PSN after the request's last one.
func (w *work) end() wire.PSN { return w.first.Plus(w.packets) }

// holds reports whether the PSN is one of the request's.
func (w *work) holds(psn wire.PSN) bool { return uint32(psn-w.first)&uint32(wire.PSNMask) < w.packets }

// partLeft is how many packets are from a place to the end of its part, or of all.
func (w *work) partLeft(place uint32) uint32 { return min(w.packets-place, w.parts.left(place)) }

// askedBefore is how many packets of an answer are asked for before a PSN and are not here.
func (w *work) askedBefore(psn wire.PSN) int {
	return max(0, min(psn.Ahead(w.missing()), int(w.packets-w.answered))) // not from first: that may be half of all PSNs behind
}

// outstanding is how many requests of a READ, or an atomic, were sent below a PSN and are not answered.
func (w *work) outstanding(newest wire.PSN) int {
	asked := uint32(w.askedBefore(newest))
	switch {
	case asked == 0 || !w.wantsAnswer():
		return 0
	case w.packets <= w.parts.size && w.parts.begin == 0: // most; to divide takes long
		return 1
	}
	return w.parts.count(w.answered, w.answered+asked)
}

// asking is how many READs and atomics so many requests are for, which were sent below a PSN and are not answered.
func (w *works) asking(reads int, newest wire.PSN) (n int) {
	for i := uint32(0); i < w.count && reads > 0; i++ {
		if outstanding := w.at(i).outstanding(newest); outstanding > 0 {
			n, reads = n+1, reads-outstanding
		}
	}
	return n
}

// missing is the first PSN of a READ's or atomic's response that is not here.
func (w *work) missing() wire.PSN { return w.first.Plus(w.answered) }

// works is a ring of requests, the oldest first. It grows as needed.
type works struct {
	slots []work // a power of two
	head  uint32
	count uint32
}

func (w *works) at(i uint32) *work { return &w.slots[(w.head+i)&uint32(len(w.slots)-1)] }

// add puts another one at the end, which is empty.
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

// drop removes the oldest.
func (w *works) drop() {
	w.head++
	w.count--
}

// find is the place of the request that has the PSN, or that has none since it cannot be carried out, which is
// the last; the count if there is none.
func (w *works) find(psn wire.PSN) uint32 {
	for i := range w.count {
		if one := w.at(i); one.packets == 0 || one.holds(psn) {
			return i
		}
	}
	return w.count
}
