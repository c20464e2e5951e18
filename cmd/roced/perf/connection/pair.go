// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/verbs"
)

// pair is one queue pair of this side.
type pair struct {
	qp           *verbs.QP
	psn          verbs.PSN // of the first packet
	posted, done uint64    // requests
	burst        []verbs.SendWR
	receives     [recvBatch]verbs.RecvWR
	owed         int // number of used receives that were not posted again
}

// mostOfBurst is the maximum payload of a burst, in bytes. Many queue pairs may share a slow path, and the watchdog
// needs regular completions.
const mostOfBurst = 4 << 20

// burstOf returns the number of requests of size bytes that are posted together, of which the last is signaled: a
// quarter of depth, so that the other requests keep the card busy.
func burstOf(depth, size int) int {
	return min(card.Batch, max(1, min(depth/4, mostOfBurst/max(1, size))))
}

// prepare builds the requests, which are all equal.
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

// outstanding returns the number of posted requests without a completion.
func (q *pair) outstanding() int { return int(q.posted - q.done) }

// fill posts requests until depth are outstanding, or total have been posted.
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

// post posts n requests. The completion of the last one completes all.
func (q *pair) post(n int) error {
	q.posted += uint64(n)
	wrs := q.burst[len(q.burst)-n:]
	wrs[n-1].ID = q.posted
	return q.qp.PostSend(wrs)
}

// replace posts receives for used ones, several at once.
func (q *pair) replace() error {
	if q.owed++; q.owed < recvBatch {
		return nil
	}
	q.owed = 0
	return q.qp.PostRecv(q.receives[:])
}
