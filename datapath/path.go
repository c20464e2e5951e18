package datapath

import "github.com/roced/roced/datapath/wire"

// PathState says what becomes of packets on a path.
type PathState uint8

// The states of a path.
const (
	PathUnreachable PathState = iota // they are dropped: no route, or the neighbour has failed
	PathResolving                    // they wait for the neighbour's answer, as many as there is room for
	PathOpen                         // they are sent
	PathLocal                        // the destination is this device
)

// Path is the way to one destination, which all address handles that lead there share. The
// control plane changes it between bursts (SetPath) as neighbours, routes and addresses change.
type Path struct {
	state    PathState
	ethernet [12]byte // destination, source
	mtu      int      // the longest payload that the route carries, in bytes; 0: as long as the port's
	waiting  [][]byte // frames, while resolving
}

// Way is what a path is set to.
type Way struct {
	State            PathState
	DestMAC, FromMAC wire.MAC
	// MTU is that of the route where it is smaller than the port's, else 0.
	MTU wire.MTU
}

const (
	pathRoom   = 64   // packets that wait for one neighbour
	engineRoom = 1024 // and for all
)

// SetPath changes a path. What waits for it is sent, or dropped, unless it goes on
// resolving. It runs in Do.
func (e *Engine) SetPath(p *Path, w Way) {
	p.state = w.State
	copy(p.ethernet[:], w.DestMAC[:])
	copy(p.ethernet[len(w.DestMAC):], w.FromMAC[:])
	if p.mtu = 0; w.MTU != 0 {
		p.mtu = w.MTU.Bytes()
	}
	if w.State != PathResolving {
		e.letGo(p)
	}
}

// Held is how many packets wait for neighbours to answer. It runs in Do.
func (e *Engine) Held() int { return e.held }

// Waiting is how many packets wait for the path's neighbour. It runs in Do.
func (p *Path) Waiting() int { return len(p.waiting) }

// hold keeps a packet whose neighbour has not answered yet: the way the kernel's own
// sockets do (arp_queue). It is a rare path, and allocates.
func (e *Engine) hold(p *Path, frame []byte) {
	if len(p.waiting) == pathRoom || e.held == engineRoom {
		e.counters.Drops[DropUnresolved]++
		return
	}
	p.waiting = append(p.waiting, append([]byte(nil), frame...))
	e.held++
}

// letGo sends what waited for a path, if it can be sent now.
func (e *Engine) letGo(p *Path) {
	for _, waited := range p.waiting {
		frame, reason, send := e.frameFor(p)
		if !send {
			e.counters.Drops[reason]++
			continue
		}
		copy(frame, waited)
		copy(frame, p.ethernet[:])
		e.link.Commit(len(waited))
	}
	if len(p.waiting) > 0 {
		e.held -= len(p.waiting)
		p.waiting = nil
		e.flushLink()
	}
}

// frameFor reserves a frame for a packet that waited, or says why it is dropped.
func (e *Engine) frameFor(p *Path) (frame []byte, reason Drop, send bool) {
	switch {
	case e.down:
		return nil, DropLinkDown, false
	case p.state != PathOpen:
		return nil, DropUnreachable, false
	}
	frame = e.link.Reserve()
	return frame, DropUnresolved, frame != nil
}
