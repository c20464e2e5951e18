// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Network is an in-memory switch. It delivers a frame to the port with the frame's destination MAC, or to all other
// ports if it is a multicast MAC or no port has it. Frames stay in order. Without Impair no frame is lost: when a
// receiver is full, its senders have no free frames and wait. With Impair, frames wait at the receiver instead. Frames
// for a port that is down are dropped.
type Network struct {
	seed       uint64
	impairment atomic.Pointer[Impairment] // nil: none
	shortOnly  atomic.Int64               // number of ports with SetWatched(true)
	long       longFrames

	mu      sync.RWMutex
	ports   []*port
	made    uint64        // number of ports created so far
	changes atomic.Uint64 // number of changes of ports

	lost, duplicated, corrupted, reordered, overflowed, marked atomic.Uint64
}

// Impairment specifies how a network loses, duplicates and delays frames. Without Jitter and Reordering they stay in
// order.
type Impairment struct {
	Loss        float64       // probability, 0 to 1
	Duplication float64       // probability, 0 to 1
	Corruption  float64       // probability that one bit of a frame is inverted, 0 to 1
	Reordering  float64       // probability that a frame is delayed until the next one, at most 1 ms, 0 to 1
	Delay       time.Duration // delay of each frame
	Rate        uint64        // rate at which a port sends, in bits per second; 0: unlimited
	Jitter      time.Duration // maximum additional random delay, exclusive: frames overtake each other
	Mark        time.Duration // ECN-capable frames that wait longer because of Rate are marked; 0: none
}

// NetworkCounters counts frames since the network was created.
type NetworkCounters struct {
	Lost       uint64 // because of Impairment.Loss
	Duplicated uint64
	Corrupted  uint64
	Reordered  uint64
	Overflowed uint64 // lost because 65,536 frames were already waiting for the receiver; see Impair
	Marked     uint64 // because of Impairment.Mark
}

// NewNetwork returns a network without ports. The effect of Impair on a frame depends on the seed, on the numbers of
// the sending and the receiving port, and on the frame's number between these ports.
func NewNetwork(seed uint64) *Network { return &Network{seed: seed} }

// Impair applies an impairment to frames sent from now on; the zero Impairment ends it. Impaired frames do not block
// their sender: up to 65,536 frames wait for each port until they are due and the port has room. Further frames are
// lost and counted as Overflowed. Impair may be called at any time.
func (n *Network) Impair(i Impairment) {
	if i == (Impairment{}) {
		n.impairment.Store(nil)
		return
	}
	n.impairment.Store(&i)
}

// Counters returns the counters. It may be called at any time.
func (n *Network) Counters() NetworkCounters {
	return NetworkCounters{n.lost.Load(), n.duplicated.Load(), n.corrupted.Load(), n.reordered.Load(), n.overflowed.Load(), n.marked.Load()}
}

// Port adds a port with a MAC and returns it. Closing the port removes it.
func (n *Network) Port(mac wire.MAC) Port { return n.Ports(mac, 1)[0] }

// Ports adds a port with a MAC and a number of queues, and returns the queues; each is a Port. A frame for the MAC is
// delivered to the queue whose index is the frame's destination QPN modulo the number of queues. Closing one queue
// removes all.
func (n *Network) Ports(mac wire.MAC, queues int) []Port {
	var made []*port
	for range queues {
		made = append(made, newPort(n, mac))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]Port, queues)
	for i, p := range made {
		n.made++
		p.number, p.queues = n.made, made
		all[i] = p
	}
	n.ports = append(n.ports, made[0])
	n.changes.Add(1)
	return all
}

// remove removes a port, with all of its queues.
func (n *Network) remove(p *port) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports = slices.DeleteFunc(slices.Clone(n.ports), func(one *port) bool { return one == p.queues[0] })
	n.changes.Add(1)
}

// portsBut returns all ports except one, the first queue of each.
func (n *Network) portsBut(one *port) (list []*port) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, p := range n.ports {
		if p != one.queues[0] {
			list = append(list, p)
		}
	}
	return list
}

// impair delivers zero, one or two copies of a frame, now or later.
func (n *Network) impair(i *Impairment, from, to *port, frame []byte) {
	way := from.pathTo(to)
	d := way.next(i)
	if d.lost {
		n.lost.Add(1)
		return
	}
	wire.Complete(frame)
	if d.corrupted {
		n.corrupted.Add(1)
		at, bit := d.at/8%uint64(len(frame)), byte(1)<<(d.at%8)
		frame[at] ^= bit
		defer func() { frame[at] ^= bit }() // the sender's frame is not corrupted
	}
	now := time.Now()
	leaves := from.queueing(now, i.Rate, len(frame))
	if i.Mark > 0 && leaves.Sub(now) > i.Mark && wire.Mark(frame) {
		n.marked.Add(1)
	}
	due := leaves.Add(i.Delay)
	late := func(frame []byte) { n.deliver(to, frame, due.Add(d.jitter[0])) }
	if d.reordered && way.hold(frame, late) {
		n.reordered.Add(1)
		return
	}
	late(frame)
	if d.duplicated {
		n.duplicated.Add(1)
		n.deliver(to, frame, due.Add(d.jitter[1]))
	}
	if held := way.takeHeld(); held != nil {
		late(held)
	}
}

func (n *Network) deliver(to *port, frame []byte, due time.Time) {
	if !to.put(frame, due) {
		n.overflowed.Add(1)
	}
}
