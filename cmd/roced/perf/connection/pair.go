package connection

import (
	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/verbs"
)

// pair is this side's half of a pair of queue pairs.
type pair struct {
	qp           *verbs.QP
	psn          verbs.PSN // of the first packet
	posted, done uint64    // requests
	burst        []verbs.SendWR
	receives     [recvBatch]verbs.RecvWR
	owed         int // receives to be posted
}

// mostOfBurst is how much a burst carries at most, in bytes: many queue pairs may share a slow way, and that something
// completes says that they are not stuck.
const mostOfBurst = 4 << 20

// burstOf is how many requests of a size, in bytes, are posted together, of which the last is signaled: a quarter of what
// may be outstanding, so that the others keep the card busy.
func burstOf(depth, size int) int {
	return min(card.Batch, max(1, min(depth/4, mostOfBurst/max(1, size))))
}

// prepare makes the requests, which are all alike.
func (q *pair) prepare(p *Pairs, peer perftest.Keys) {
	o := &p.options
	wr := verbs.SendWR{
		Opcode: o.Operation.opcode(), SGList: []verbs.SGE{p.mr.SGE(0, o.Size)},
		RemoteAddr: peer.Address, RKey: verbs.RKey(peer.RKey), CompareAdd: 1,
	}
	q.burst = make([]verbs.SendWR, burstOf(o.Depth, o.Size))
	for i := range q.burst {
		q.burst[i] = wr
	}
	q.burst[len(q.burst)-1].Flags = verbs.SendSignaled
	for i := range q.receives {
		q.receives[i].SGList = []verbs.SGE{p.mr.SGE(p.room(), o.Size)}
	}
}

// outstanding is how many requests are not known to be done.
func (q *pair) outstanding() int { return int(q.posted - q.done) }

// fill posts requests until so many are outstanding, or have been posted in all.
func (q *pair) fill(depth int, total uint64) error {
	for {
		n := min(len(q.burst), depth-q.outstanding(), int(total-q.posted))
		if n <= 0 {
			return nil
		}
		if err := q.post(n); err != nil {
			return err
		}
	}
}

// post posts requests. The completion of the last says how many are done.
func (q *pair) post(n int) error {
	q.posted += uint64(n)
	wrs := q.burst[len(q.burst)-n:]
	wrs[n-1].ID = q.posted
	return q.qp.PostSend(wrs)
}

// replace posts a receive for one that has been used, several at once.
func (q *pair) replace() error {
	if q.owed++; q.owed < recvBatch {
		return nil
	}
	q.owed = 0
	return q.qp.PostRecv(q.receives[:])
}
