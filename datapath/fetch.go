package datapath

import (
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

// A packet needs some lines of its queue pair's memory. Of thousands of queue pairs hardly any line is in the
// processor's cache, and to get one takes as long as half of what else is done for a packet. So those of several packets
// are read ahead, all at once: the processor does not wait for one before it asks for the next.

const (
	// fetchAhead is of how many packets.
	fetchAhead = 16
	// fetchFrom is how many queue pairs there are where that is worth while; those of fewer are in the cache.
	fetchFrom = 256
)

// fetch reads ahead what the next packets of a burst need. It touches only memory of the engine's own: nothing that a
// program shares can turn out not to be there here.
func (t *tables) fetch(from link.Link) {
	sum := uint32(0)
	for n := range fetchAhead {
		frame := from.Behind(n)
		if frame == nil {
			break
		}
		if qp := t.qps[wire.GuessDestQP(frame)%maxQPs]; qp != nil {
			sum += uint32(qp.State) + qp.service.touch()
			if qp.Recv != nil {
				sum += qp.Recv.Entries()
			}
		}
	}
	t.fetched = sum // so that it is read
}
