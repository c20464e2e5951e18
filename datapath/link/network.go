package link

import (
	"math/rand/v2"
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

	mu      sync.RWMutex
	ports   []*port
	made    uint64        // ports made so far
	changes atomic.Uint64 // of ports, counted

	lost, duplicated, corrupted, overflowed atomic.Uint64
}

// Impairment says how a network loses, duplicates and delays frames. Without Jitter they stay in
// order.
type Impairment struct {
	Loss        float64       // probability, 0 to 1
	Duplication float64       // probability, 0 to 1
	Corruption  float64       // probability that one of its bits is another, 0 to 1
	Delay       time.Duration // of each frame
	Jitter      time.Duration // random further delay, less than this: frames overtake each other
}

// NetworkCounters counts frames since the network was made.
type NetworkCounters struct {
	Lost       uint64 // by Impairment.Loss
	Duplicated uint64
	Corrupted  uint64
	Overflowed uint64 // lost because 65,536 frames waited for the receiver already, see Impair
}

// NewNetwork makes a network without ports. With the same seed, and the same frames sent by each
// port, Impair makes the same random choices.
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
	return NetworkCounters{n.lost.Load(), n.duplicated.Load(), n.corrupted.Load(), n.overflowed.Load()}
}

// Port adds a port with a MAC. Closing the port removes it.
func (n *Network) Port(mac wire.MAC) (Port, error) {
	p, err := newPort(n, mac)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	p.random = rand.New(rand.NewPCG(n.seed, n.made))
	n.ports = append(n.ports, p)
	n.changes.Add(1)
	return p, nil
}

// remove removes a port.
func (n *Network) remove(p *port) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, one := range n.ports {
		if one == p {
			n.ports = append(n.ports[:i:i], n.ports[i+1:]...)
		}
	}
	n.changes.Add(1)
}

// portsBut lists all ports except one.
func (n *Network) portsBut(one *port) (list []*port) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, p := range n.ports {
		if p != one {
			list = append(list, p)
		}
	}
	return list
}

// impair delivers no copy of a frame, one or two, now or later.
func (n *Network) impair(i *Impairment, random *rand.Rand, to *port, frame []byte) {
	if random.Float64() < i.Loss {
		n.lost.Add(1)
		return
	}
	if i.Corruption > 0 && random.Float64() < i.Corruption {
		n.corrupted.Add(1)
		at, bit := random.IntN(len(frame)), byte(1)<<random.IntN(8)
		frame[at] ^= bit
		defer func() { frame[at] ^= bit }() // the sender's own is whole
	}
	copies := 1
	if random.Float64() < i.Duplication {
		n.duplicated.Add(1)
		copies = 2
	}
	for range copies {
		delay := i.Delay
		if i.Jitter > 0 {
			delay += time.Duration(random.Int64N(int64(i.Jitter)))
		}
		n.deliver(to, frame, delay)
	}
}

func (n *Network) deliver(to *port, frame []byte, delay time.Duration) {
	if !to.put(frame, delay) {
		n.overflowed.Add(1)
	}
}
