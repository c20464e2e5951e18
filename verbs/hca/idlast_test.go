// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"
	"time"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca/ids"
)

// TestLastWordsReachAnUnknownNeighbour: a REJ or a DREQ before an orderly close reaches the peer, even if the peer's
// neighbour entry no longer exists. Otherwise the peer would wait for more than a minute.
func TestLastWordsReachAnUnknownNeighbour(t *testing.T) {
	hosts := labtest.Pair(t) // not in parallel: Close waits up to closeTimeout for the neighbour's response
	for range 5 {
		for _, connected := range []bool{false, true} {
			a, b := newStation(t, open(t, hosts.A)), newStation(t, open(t, hosts.B))
			c := newConnector(t, a, b, "10.77.0.2")
			want := cm.EventRejected
			var id *cm.ID
			if connected {
				want = cm.EventDisconnected
				_, id = c.connect()
			} else {
				c.ask()
				id = c.expect(c.to, cm.EventConnectRequest)
			}
			forget(t, hosts.B, address("10.77.0.1"))
			if connected {
				check(t, id.Disconnect())
				check(t, id.DestroyQP())
			} else {
				check(t, id.Reject([]byte("no")))
			}
			check(t, id.Close())
			check(t, c.service.Close())
			check(t, c.to.Close())
			check(t, b.device.Close())
			active := c.expect(c.from, want)
			check(t, active.DestroyQP())
			check(t, active.Close())
			check(t, c.from.Close())
			check(t, a.device.Close())
		}
	}
}

// TestCloseWaitsForAMessageInHand: the manager's goroutine has dequeued a message and not sent it yet.
func TestCloseWaitsForAMessageInHand(t *testing.T) {
	w := newWirePair(t)
	c := newConnector(t, w.a, w.b, "10.0.0.2")
	c.ask()
	id := c.expect(c.to, cm.EventConnectRequest)
	m := w.b.device.manager
	closed := make(chan error, 1)
	m.Serving(func(q *ids.QP1) {
		check(t, id.Reject(nil))
		rej, some := m.Next()
		if !some {
			t.Error("got no message")
			return
		}
		go func() { closed <- w.b.device.Close() }()
		select {
		case <-w.b.device.life.stopping:
			t.Error("Close does not wait")
		case <-time.After(20 * time.Millisecond): // longer than Close takes to get there
		}
		check(t, q.Post(time.Now(), &rej))
	})
	check(t, <-closed)
	c.expect(c.from, cm.EventRejected)
}
