// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// work is a send request of a connected queue pair that has been taken and not completed. Its slot is not reused until
// then: a retransmission gathers the payload again from the program's memory. Only the results of the check are kept
// and not read again.
type work struct {
	ring.SendConnected
	operands ring.Atomic
	length   uint32      // bytes of the message
	packets  uint32      // number of PSNs: for a READ those of its response
	parts    parts       // the parts for which a READ sends requests
	first    wire.PSN    // its first PSN
	answered uint32      // received packets of a READ's or atomic's response
	status   ib.WCStatus // why it cannot be executed
}

// wantsAnswer reports whether the peer's response contains data.
func (w *work) wantsAnswer() bool {
	return w.Opcode.Means().Is(wire.MeansAnswered)
}

// local reports whether the request is executed here, without packets.
func (w *work) local() bool { return w.Opcode.Local() }

func (w *work) atomic() bool {
	return w.Opcode.Means().Is(wire.MeansAtomic)
}

// end returns the PSN after the request's last one.
func (w *work) end() wire.PSN { return w.first.Plus(w.packets) }

// holds reports whether the PSN is one of the request's.
func (w *work) holds(psn wire.PSN) bool { return uint32(psn-w.first)&uint32(wire.PSNMask) < w.packets }

// partLeft returns the number of packets from a place to the end of its part, or of the request.
func (w *work) partLeft(place uint32) uint32 { return min(w.packets-place, w.parts.left(place)) }

// askedBefore returns the number of response packets that are requested before a PSN and have not arrived.
func (w *work) askedBefore(psn wire.PSN) int {
	return max(0, min(psn.Ahead(w.missing()), int(w.packets-w.answered))) // not from first: that may be half of all PSNs behind
}

// outstanding returns the number of request packets of a READ or an atomic that were sent below a PSN and are not
// answered.
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

// asking returns the number of READs and atomics that a number of outstanding request packets below a PSN belong to.
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
	slots []work // a power of two
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

// find returns the index of the request that includes the PSN, or of the last one if that cannot be executed and so has
// no PSN; otherwise the count.
func (w *works) find(psn wire.PSN) uint32 {
	for i := range w.count {
		if one := w.at(i); one.packets == 0 || one.holds(psn) {
			return i
		}
	}
	return w.count
}
