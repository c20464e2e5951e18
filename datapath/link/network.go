package link

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Network is a switch in memory: what is sent into one of its ports arrives at the port with
// the frame's destination MAC, in order; for a group, and where no port has the MAC, at all others.
// Nothing is lost unless Impair says so: a sender that is faster than the receiver finds no frame
// free. What is for a port that is down goes nowhere.
type Network struct {
	seed       uint64
	impairment atomic.Pointer[Impairment] // nil: none

	mu      sync.RWMutex
	ports   []*port
	made    uint64 // ports that have ever been
	changes atomic.Uint64

	lost, duplicated, overflowed atomic.Uint64
}

// Impairment is what a network does to frames beside delivering them.
type Impairment struct {
	Loss        float64       // of frames, from 0 to 1
	Duplication float64       // likewise
	Delay       time.Duration // of each frame
	Jitter      time.Duration // at most so much more, at random: frames overtake each other
}

// NetworkCounters are what a network has done to frames since it was made.
type NetworkCounters struct {
	Lost       uint64 // by Impairment.Loss
	Duplicated uint64
	Overflowed uint64 // an impaired frame found the receiver's queue full
}

// NewNetwork makes a network without ports. What Impair does at random is the same for the
// same seed and the same frames of each port.
func NewNetwork(seed uint64) *Network { return &Network{seed: seed} }

// Impair has frames that are sent from now on lost, duplicated and delayed; the zero
// Impairment ends that. It may be called at any time.
func (n *Network) Impair(i Impairment) {
	if i == (Impairment{}) {
		n.impairment.Store(nil)
		return
	}
	n.impairment.Store(&i)
}

// Counters may be called at any time.
func (n *Network) Counters() NetworkCounters {
	return NetworkCounters{n.lost.Load(), n.duplicated.Load(), n.overflowed.Load()}
}

// Port adds a port with a MAC. Its Close takes it away.
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

// remove takes a port away.
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

// others are all ports but one.
func (n *Network) others(than *port) (list []*port) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, p := range n.ports {
		if p != than {
			list = append(list, p)
		}
	}
	return list
}

// impair delivers a copy of a frame, or none, or two, now or later.
func (n *Network) impair(i *Impairment, random *rand.Rand, to *port, frame []byte) {
	if random.Float64() < i.Loss {
		n.lost.Add(1)
		return
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
		if delay <= 0 {
			n.deliver(to, frame)
			continue
		}
		late := append([]byte(nil), frame...)
		time.AfterFunc(delay, func() { n.deliver(to, late) })
	}
}

func (n *Network) deliver(to *port, frame []byte) {
	if !to.put(frame) {
		n.overflowed.Add(1)
	}
}
