package link

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Network is a switch in memory. It delivers a frame to the port with the frame's destination MAC,
// or to all other ports if the MAC is a group's or no port has it. Frames stay in order. No frame is
// lost without Impair: when a receiver is full, its senders run out of free frames and wait. With
// Impair, frames wait at the receiver instead. Frames for a port that is down are dropped.
type Network struct {
	seed       uint64
	impairment atomic.Pointer[Impairment] // nil: none
	shortOnly  atomic.Int64               // ports that want no long packets
	long       longFrames

	mu      sync.RWMutex
	ports   []*port
	made    uint64        // ports made so far
	changes atomic.Uint64 // of ports, counted

	lost, duplicated, corrupted, reordered, overflowed, marked atomic.Uint64
}

// Impairment says how a network loses, duplicates and delays frames. Without Jitter and Reordering they stay in
// order.
type Impairment struct {
	Loss        float64       // probability, 0 to 1
	Duplication float64       // probability, 0 to 1
	Corruption  float64       // probability that one of its bits is another, 0 to 1
	Reordering  float64       // probability that the next frame of the path overtakes it, 0 to 1; if none comes, it is a millisecond late
	Delay       time.Duration // of each frame
	Rate        uint64        // bits per second that leave a port; 0: as many as there are
	Jitter      time.Duration // random further delay, less than this: frames overtake each other
	Mark        time.Duration // frames that wait for longer to leave, with Rate, are marked (ECN) if their sender heeds that; 0: none
}

// NetworkCounters counts frames since the network was made.
type NetworkCounters struct {
	Lost       uint64 // by Impairment.Loss
	Duplicated uint64
	Corrupted  uint64
	Reordered  uint64
	Overflowed uint64 // lost because 65,536 frames waited for the receiver already, see Impair
	Marked     uint64 // by Impairment.Mark
}

// NewNetwork makes a network without ports. What Impair does to a frame depends on the seed, on the ports that it goes
// from and to, by their numbers, and on its own number among the frames between these.
func NewNetwork(seed uint64) *Network { return &Network{seed: seed} }

// Impair applies an impairment to frames that are sent from now on; the zero Impairment ends it.
// Impaired frames do not hold up their sender: up to 65,536 wait for each port, until they are due
// and it has room. Further ones are lost, and counted as Overflowed. Impair may be called at any time.
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

// Port adds a port with a MAC. Closing the port removes it.
func (n *Network) Port(mac wire.MAC) Port { return n.Ports(mac, 1)[0] }

// Ports adds a port with a MAC and so many queues, each a Port: a frame for the MAC comes to that of the number of its
// queue pair, modulo the number of queues. Closing one removes all.
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

// portsBut lists all ports except one's, the first queue of each.
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

// impair delivers no copy of a frame, one or two, now or later.
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
		defer func() { frame[at] ^= bit }() // the sender's own is whole
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
