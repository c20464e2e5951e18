// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// TestHundredsOfQueuePairs: each message arrives at its queue pair when there are so many queue pairs that the data for
// the packets of a burst is prefetched.
func TestHundredsOfQueuePairs(t *testing.T) {
	t.Parallel()
	t.Run("in memory", func(t *testing.T) {
		w := newWirePair(t)
		hundreds(w.a, w.b, "10.0.0.2")
	})
	t.Run("XDP", func(t *testing.T) {
		hosts := labtest.Pair(t)
		b := newStation(t, open(t, hosts.B))
		hundreds(newStation(t, open(t, hosts.A)), b, "10.77.0.2")
	})
}

func hundreds(a, b *station, to string) {
	a.Helper()
	const many, together = 300, depth
	ah := a.ah(to)
	all := make([]*verbs.QP, many)
	for i := range all {
		all[i] = b.newQP(verbs.QPCap{MaxRecvWR: 1, MaxRecvSGE: 1})
		check(b, all[i].Activate(testQKey))
	}
	order := rand.Perm(many)
	for len(order) > 0 {
		some := order[:min(together, len(order))]
		order = order[len(some):]
		for slot, i := range some {
			check(b, all[i].PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{b.piece(slot, slotLen)}}}))
			binary.LittleEndian.PutUint32(a.slot(slot), uint32(i))
			wr := a.send(uint64(i), ah, b, a.piece(slot, 4))
			wr.RemoteQPN = all[i].Number()
			a.post(wr)
		}
		a.wait(len(some))
		came := map[uint64]uint32{}
		for _, wc := range b.wait(len(some)) {
			if wc.Status != verbs.WCSuccess || wc.QPN != all[wc.ID].Number() {
				b.Errorf("%+v", wc)
			}
			came[wc.ID]++
		}
		for slot, i := range some {
			if got := binary.LittleEndian.Uint32(b.slot(slot)[40:]); came[uint64(i)] != 1 || got != uint32(i) {
				b.Errorf("queue pair %d has %d messages; got message %d", i, came[uint64(i)], got)
			}
		}
	}
}
