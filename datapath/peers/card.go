// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
)

// Max is the maximum number of engines of a card.
const Max = 8

// places is the maximum number of queue pairs of a card. A QPN modulo places is unique on its card.
const places = 1 << 16

// Card is the state that the engines of a card share. A card with a single engine has none.
type Card struct {
	peers []*Peer
	homes [places]atomic.Int32 // index in peers of each queue pair's engine, plus one; 0: no such queue pair

	Flights atomic.Int32 // number of sessions with packets in flight; see flight.Scheduler.Card
	// Atomics is held while the card executes an RDMA atomic, because sessions of several engines can share memory.
	Atomics sync.Mutex
}

// Join adds an engine. call makes its worker run a round. If wake is not nil, it is called when a packet arrives while
// the worker is asleep; otherwise the descriptors of Descriptors become readable. All engines must join before any of
// them runs.
func (c *Card) Join(call, wake func()) (*Peer, error) {
	p := &Peer{card: c, place: len(c.peers), call: call, groups: map[wire.GID]Route{}}
	p.self[0] = p
	c.peers = append(c.peers, p)
	return p, p.open(wake)
}
