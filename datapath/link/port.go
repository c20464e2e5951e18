package link

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

const (
	portFrames    = 128 // that a port has room for, in each direction
	portFrameSize = (wire.MaxHeaders + 4096 + wire.MaxTrailer + 63) &^ 63
)

// Port is a port of a Network.
type Port interface {
	Link
	// SetUp says whether the port takes and gives frames; it is up at first. It may be called
	// at any time.
	SetUp(up bool)
}

// port is a Port. Frames are built in buffers of the sender's, and change places with buffers of
// the receiver's that are free.
type port struct {
	network *Network
	mac     wire.MAC
	random  *rand.Rand
	asleep  atomic.Bool
	down    atomic.Bool
	wakeFD  int

	out    frames // built, and not delivered yet
	routes routes

	arrived atomic.Int64 // in.count, to look without the lock
	mu      sync.Mutex   // of what follows
	in      frames
	closed  bool
	lent    uint // of in, to Receive
}

// frames is a ring of frames.
type frames struct {
	buffers [portFrames]*[portFrameSize]byte
	lengths [portFrames]int
	first   uint
	count   uint
}

// allocate makes all buffers of one piece of memory, which costs what is written to.
func (f *frames) allocate() {
	memory := new([portFrames][portFrameSize]byte)
	for i := range f.buffers {
		f.buffers[i] = &memory[i]
	}
}

// end is the place behind the last frame, if the ring is not full.
func (f *frames) end() uint { return (f.first + f.count) % portFrames }

// room gives the buffer behind the last frame, nil if there is none.
func (f *frames) room() []byte {
	if f.count == portFrames {
		return nil
	}
	return f.buffers[f.end()][:]
}

// grow makes a frame of the buffer that room gave.
func (f *frames) grow(length int) {
	f.lengths[f.end()] = length
	f.count++
}

func (f *frames) at(i uint) []byte {
	place := (f.first + i) % portFrames
	return f.buffers[place][:f.lengths[place]]
}

// shrink takes the first n frames off. An empty ring starts over, with the buffers that are in
// the processor's cache.
func (f *frames) shrink(n uint) {
	f.first = (f.first + n) % portFrames
	if f.count -= n; f.count == 0 {
		f.first = 0
	}
}

// move takes the first frame of another ring, and gives a free buffer for it.
func (f *frames) move(from *frames) {
	end := f.end()
	f.buffers[end], from.buffers[from.first] = from.buffers[from.first], f.buffers[end]
	f.lengths[end] = from.lengths[from.first]
	f.count++
	from.shrink(1)
}

func newPort(n *Network, mac wire.MAC) (*port, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd for a port in memory: %w", err)
	}
	p := &port{network: n, mac: mac, wakeFD: fd}
	p.in.allocate()
	p.out.allocate()
	return p, nil
}

// SetUp implements Port.
func (p *port) SetUp(up bool) { p.down.Store(!up) }

// Receive implements Link.
func (p *port) Receive(burst [][]byte) int {
	if p.arrived.Load() == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent = min(p.in.count, uint(len(burst)))
	for i := range p.lent {
		burst[i] = p.in.at(i)
	}
	return int(p.lent)
}

// Release implements Link.
func (p *port) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in.shrink(p.lent)
	p.arrived.Store(int64(p.in.count))
	p.lent = 0
}

// Reserve implements Link.
func (p *port) Reserve() []byte { return p.out.room() }

// Commit implements Link.
func (p *port) Commit(length int) { p.out.grow(length) }

// Flush implements Link. A receiver that has no room holds up what is behind its frames.
func (p *port) Flush() bool {
	for p.out.count > 0 {
		impairment := p.network.impairment.Load()
		to := p.routes.find(p)
		switch {
		case p.down.Load():
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

// routes is what a port knows of the others, until the network changes.
type routes struct {
	changes uint64
	others  []*port
	mac     wire.MAC // of the last frame that was for one port
	to      *port
}

// find gives the port that the first frame is for, nil if it is for several: a group's, or for a
// MAC that nobody has.
func (r *routes) find(p *port) *port {
	if p.network.changes.Load() != r.changes {
		*r = routes{changes: p.network.changes.Load(), others: p.network.others(p)}
	}
	if len(r.others) == 1 {
		return r.others[0] // whoever it is for
	}
	dest := wire.MAC(p.out.at(0))
	if dest == r.mac && r.to != nil {
		return r.to
	}
	for _, other := range r.others {
		if other.mac == dest {
			r.mac, r.to = dest, other
			return other
		}
	}
	return nil
}

// flood delivers a copy of the first frame to one port, or to all others; to none, if one of them
// has no room and the network loses nothing.
func (p *port) flood(one *port, impairment *Impairment) bool {
	frame, to := p.out.at(0), p.routes.others
	if one != nil {
		to = []*port{one}
	}
	for _, one := range to {
		if impairment == nil && !one.hasRoom() {
			return false
		}
	}
	for _, one := range to {
		if impairment != nil {
			p.network.impair(impairment, p.random, one, frame)
		} else {
			p.network.deliver(one, frame)
		}
	}
	p.out.shrink(1)
	return true
}

// takes reports whether what comes has a place to go: not so where the port drops it.
func (p *port) takes() bool { return !p.closed && !p.down.Load() }

func (p *port) hasRoom() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.in.count < portFrames || !p.takes()
}

// put copies a frame into the port; false if there is no room.
func (p *port) put(frame []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.takes() {
		return true
	}
	buffer := p.in.room()
	if buffer == nil {
		return false
	}
	p.in.grow(copy(buffer, frame))
	p.tell()
	return true
}

// takeFrom takes the first frames that are for this port, as many as there is room for, and
// gives buffers of its own for them.
func (p *port) takeFrom(sender *port) (taken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, takes, alone := &sender.out, p.takes(), len(sender.routes.others) == 1
	for ; out.count > 0 && (alone || sender.routes.find(sender) == p); taken++ {
		switch {
		case !takes:
			out.shrink(1)
		case p.in.count < portFrames:
			p.in.move(out)
		default:
			p.tell()
			return taken
		}
	}
	p.tell()
	return taken
}

// tell wakes whoever sleeps until frames come. The caller holds mu.
func (p *port) tell() {
	p.arrived.Store(int64(p.in.count))
	if p.asleep.Load() && !p.closed {
		one := [8]byte{1}
		_, _ = unix.Write(p.wakeFD, one[:])
	}
}

// TakeBack implements Link: what waits is for a receiver without room.
func (p *port) TakeBack() {}

// TakenBack implements Link.
func (p *port) TakenBack() int { return 0 }

// Refused implements Link.
func (p *port) Refused() int { return 0 }

// Descriptors implements Link.
func (p *port) Descriptors() []int { return []int{p.wakeFD} }

// SetAsleep implements Link.
func (p *port) SetAsleep(asleep bool) {
	p.asleep.Store(asleep)
	if !asleep {
		var count [8]byte
		_, _ = unix.Read(p.wakeFD, count[:])
	}
}

// Close implements Link.
func (p *port) Close() error {
	p.network.remove(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	return unix.Close(p.wakeFD)
}
