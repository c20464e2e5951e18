// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
)

// Max is the largest number of engines of a card.
const Max = 8

// places is the number of queue pairs of a card. The low bits of a queue pair's number are unique on its card.
const places = 1 << 16

// Card is the state that the engines of a card share. A card with one engine has none.
type Card struct {
	peers []*Peer
	homes [places]atomic.Int32 // place of each queue pair's engine in peers, plus one; 0: no such queue pair

	Flights atomic.Int32 // sessions with packets in flight
	// Atomics is held during an atomic operation of a connection's peer: two sessions can share a region's memory.
	Atomics sync.Mutex
}

// Join adds an engine. call wakes its worker to run a round. wake, if not nil, is called when a packet arrives while
// the worker is asleep; otherwise Descriptors become readable. Engines join before any of them runs.
func (c *Card) Join(call, wake func()) (*Peer, error) {
	p := &Peer{card: c, place: len(c.peers), call: call, groups: map[wire.GID]Route{}}
	p.self[0] = p
	c.peers = append(c.peers, p)
	return p, p.open(wake)
}
