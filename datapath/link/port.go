// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/wire"
)

const (
	portFrames    = 128 // capacity of a port, in each direction
	portFrameSize = (wire.MaxHeaders + 4096 + wire.MaxTrailer + 63) &^ 63
)

// Port is a port of a Network.
type Port interface {
	Link
	// SetUp sets whether the port's link is up; initially it is. While it is down, frames to and from the port are
	// dropped, including frames that wait for room in it, and delayed frames that become due. It may be called at any
	// time.
	SetUp(up bool)

	// Longest returns the current maximum payload of a long packet, in bytes; 0: no long packets.
	Longest() int
	// ReserveLong is Reserve for a long packet.
	ReserveLong() []byte
	// SetHelp sets the function help, with which ports of the same user run rounds of this port's engine while its
	// worker sleeps. help reports whether the worker may stay asleep. It is called without a lock. Ports of other users
	// do not call it, because their threads would access memory of this user's programs, which may be slow. A nil user
	// matches no other port.
	SetHelp(user any, help func() (done bool))
	// SetWake sets the function that wakes the worker or the leader. It is called under the port's lock, each time that
	// frames arrive while SetAsleep(true) is in effect. It must not block.
	SetWake(wake func())
	// PutOffWakes makes the port list the sleeping receivers of frames that are sent from now on, instead of waking
	// them, if the frames are few. TakeWakes ends this and returns the listed ports, valid until the next call of
	// TakeWakes. The caller must call Help or Call for each of them after it has released the lease.
	PutOffWakes()
	TakeWakes() []Port
	// Help runs rounds of the port's engine, unless its worker is awake. If the worker is needed, Help wakes it and
	// returns false. Call only wakes the worker.
	Help() bool
	Call()
	// SetWatched sets whether the port's packets are captured. While they are, the network carries no new long packets.
	SetWatched(watched bool)
}

// port is a Port. A sender builds frames in its own buffers. Delivery swaps such a buffer with a free one of the
// receiver, so that nothing is copied.
type port struct {
	network *Network
	mac     wire.MAC
	number  uint64           // number of the port in the network
	queues  []*port          // all queues of the port, including this one
	paths   map[uint64]*path // paths of impaired frames, by the receiver's number; used by the sender's engine only
	free    time.Time        // with Impairment.Rate: time at which the last frame has been sent
	asleep  atomic.Bool
	down    atomic.Bool

	out         frames     // committed frames that are not delivered yet
	long        *longFrame // reserved long frame; nil: none
	commitsLong bool       // the reserved frame is long
	watched     bool       // see SetWatched
	routes      routes
	putsOff     bool   // see PutOffWakes
	owed        []Port // ports to help or to wake after the round

	burst [maxBurst][]byte // frames of the last Receive
	next  uint             // index in burst of the next frame

	arrived atomic.Int64 // in.count, readable without the lock
	mu      sync.Mutex   // guards the fields below
	in      frames
	late    late
	help    func() (done bool) // see SetHelp; nil: the worker must be woken
	user    any                // see SetHelp; also read under the lease, without mu
	wake    func()             // see SetWake
	closed  bool
	lent    uint // number of frames of in that the last Receive returned
}

func newPort(n *Network, mac wire.MAC) *port {
	p := &port{network: n, mac: mac, wake: func() {}}
	p.queues = []*port{p}
	p.in.allocate(&n.long)
	p.out.allocate(&n.long)
	return p
}

// SetWake implements Port.
func (p *port) SetWake(wake func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake = wake
}

// SetUp implements Port.
func (p *port) SetUp(up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.catchUp()
	p.down.Store(!up)
	p.catchUp()
}

// Receive implements Link.
func (p *port) Receive() int {
	if p.arrived.Load() == 0 { // pairs with noteArrived; a worker calls SetAsleep(true) first
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent, p.next = min(p.in.count, maxBurst), 0
	for i := range p.lent {
		p.burst[i] = p.in.at(i)
	}
	return int(p.lent)
}

// Next implements Link.
func (p *port) Next() []byte {
	p.next++
	return p.burst[p.next-1]
}

// Behind implements Link.
func (p *port) Behind(n int) []byte {
	if at := p.next + uint(n); at < p.lent {
		return p.burst[at]
	}
	return nil
}

// Room implements Link.
func (p *port) Room() int { return 0 }

// Numbers implements Link.
func (p *port) Numbers() bool { return false }

// Release implements Link.
func (p *port) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in.shrink(p.lent)
	p.arrived.Store(int64(p.in.count))
	p.lent = 0
	p.catchUp()
}

// Reserve implements Link.
func (p *port) Reserve() []byte {
	p.commitsLong = false
	return p.out.room()
}

// Commit implements Link.
func (p *port) Commit(length int) {
	if !p.commitsLong {
		p.out.grow(length)
		return
	}
	p.out.growLong(p.long, length)
	p.long, p.commitsLong = nil, false
}

// Flush implements Link. A frame whose receiver is full blocks the frames after it.
func (p *port) Flush() bool {
	p.leaveLong()
	for p.out.count > 0 {
		impairment := p.network.impairment.Load()
		to := p.routes.find(p)
		switch {
		case p.down.Load(), to == nil && p.out.isLong(): // a long frame without a receiver: the peer no longer exists
			p.out.shrink(1)
		case to == nil || impairment != nil:
			if !p.flood(to, impairment) {
				return false
			}
		case to.takeFrom(p) == 0:
			return false
		}
	}
	return true
}

// flood delivers a copy of the first frame to the port one, or to all other ports if one is nil. If there is no
// impairment and a receiver is full, it delivers no copies and returns false.
func (p *port) flood(one *port, impairment *Impairment) bool {
	frame, to := p.out.at(0), p.routes.peers
	if one != nil {
		to = []*port{one}
	}
	for _, one := range to {
		if impairment == nil && !one.queueOf(frame).hasRoom() {
			return false
		}
	}
	for _, one := range to {
		one = one.queueOf(frame)
		if impairment != nil {
			p.network.impair(impairment, p, one, frame)
		} else {
			p.network.deliver(one, frame, time.Time{})
		}
	}
	p.out.shrink(1)
	return true
}

// queueing returns the time at which a frame has been sent at a rate in bits per second, after the earlier frames; 0 is
// an unlimited rate.
func (p *port) queueing(now time.Time, rate uint64, length int) time.Time {
	if rate == 0 {
		return now
	}
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(length) * 8 / float64(rate) * float64(time.Second)))
	return p.free
}

// takes reports whether the port accepts frames; otherwise it drops them.
func (p *port) takes() bool { return !p.closed && !p.down.Load() }

func (p *port) hasRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.catchUp()
	return p.in.count < portFrames || !p.takes()
}

// put copies a frame into the port. The frame arrives when it is due and there is room. put returns false if too many
// frames are waiting already.
func (p *port) put(frame []byte, due time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	isDue := due.IsZero() || !due.After(time.Now())
	if p.closed || isDue && p.down.Load() {
		return true
	}
	p.catchUp()
	if isDue && len(p.late.frames) == 0 && p.in.count < portFrames {
		p.in.put(frame)
		p.noteArrived(nil)
		return true
	}
	if !p.late.add(frame, due) {
		return false
	}
	p.catchUp()
	return true
}

// catchUp moves due frames to the ring, as far as there is room. If the ring is full, Release calls it again; otherwise
// it sets the timer for the next frame. The caller holds mu.
func (p *port) catchUp() {
	if len(p.late.frames) == 0 {
		return
	}
	before := p.in.count
	for p.late.isDue() && (!p.takes() || p.in.count < portFrames) {
		if frame := p.late.take(); p.takes() {
			p.in.put(frame)
		}
	}
	if p.in.count > before {
		p.noteArrived(nil)
	}
	if p.in.count < portFrames {
		p.late.callWhenDue(p.comeDue)
	}
}

// comeDue is called by the timer.
func (p *port) comeDue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.catchUp()
}

// takeFrom moves the sender's first frames to this port, as long as they are for this port and it has room, and returns
// their number.
func (p *port) takeFrom(sender *port) (taken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.catchUp()
	out, takes, alone := &sender.out, p.takes(), len(sender.routes.peers) == 1 && len(p.queues) == 1
	for ; out.count > 0 && (alone || sender.routes.find(sender) == p); taken++ {
		switch {
		case !takes:
			out.shrink(1)
		case p.in.count < portFrames:
			p.in.move(out)
		default:
			p.noteArrived(sender)
			return taken
		}
	}
	p.noteArrived(sender)
	return taken
}

// TakeBack implements Link. It does nothing: Flush drops the frames of a port that is down.
func (p *port) TakeBack() {}

// TakenBack implements Link.
func (p *port) TakenBack() int { return 0 }

// Refused implements Link.
func (p *port) Refused() int { return 0 }

// Descriptors implements Link: see SetWake.
func (p *port) Descriptors() []int { return nil }

// SetAsleep implements Link. It pairs with noteArrived: asleep is stored before arrived is loaded by Receive.
func (p *port) SetAsleep(asleep bool) { p.asleep.Store(asleep) }

// Close implements Link.
func (p *port) Close() error {
	p.network.remove(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.late.drop()
	p.in.shrink(p.in.count)
	p.out.shrink(p.out.count)
	p.leaveLong()
	p.SetWatched(false)
	return nil
}
