// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/wire"
)

// PathState determines how packets on a path are handled.
type PathState uint8

// The states of a path.
const (
	PathUnreachable PathState = iota // dropped: there is no route, or the neighbour has failed
	PathResolving                    // held until the neighbour is resolved, up to a limit
	PathOpen                         // sent
	PathLocal                        // delivered locally: the destination is this card
)

// Path is the route to one destination, shared by all address handles and connections with this destination. The
// control plane changes it between rounds (SetPath) when neighbours, routes or addresses change.
type Path struct {
	state    PathState
	ethernet [12]byte            // destination MAC and source MAC
	mtu      int                 // maximum payload of the route, in bytes; 0: that of the port
	waiting  [peers.Max][][]byte // frames held while resolving, by index of the engine
}

// PathAttr holds the attributes that SetPath sets.
type PathAttr struct {
	State            PathState
	DestMAC, FromMAC wire.MAC
	// MTU is the route's MTU if it is smaller than the port's; otherwise 0.
	MTU wire.MTU
}

const (
	maxWaiting = 64   // packets held for one path
	maxHeld    = 1024 // packets held for all paths
)

// set changes a path. Packets that an engine holds for it are sent or dropped, unless the path is still resolving. It
// runs in Do, once for each engine.
func (p *Path) set(e *Engine, attr PathAttr) {
	p.state = attr.State
	copy(p.ethernet[:], attr.DestMAC[:])
	copy(p.ethernet[len(attr.DestMAC):], attr.FromMAC[:])
	if p.mtu = 0; attr.MTU != 0 {
		p.mtu = attr.MTU.Bytes()
	}
	if attr.State != PathResolving {
		p.sendWaiting(e)
	}
}

// Waiting returns the number of packets that wait for the path's neighbour. It runs in Do.
func (p *Path) Waiting() (n int) {
	for _, frames := range p.waiting {
		n += len(frames)
	}
	return n
}

// waitingFor returns the list of the packets that an engine holds for the path.
func (p *Path) waitingFor(e *Engine) *[][]byte {
	return &p.waiting[e.peers.Place()]
}

// hold keeps a packet until the neighbour is resolved, as the kernel does (arp_queue). It copies the packet to newly
// allocated memory, which is acceptable because it is rare.
func (p *Path) hold(e *Engine, frame []byte) {
	waiting := p.waitingFor(e)
	if len(*waiting) == maxWaiting || e.round.held == maxHeld {
		e.counters.Drops[DropUnresolved]++
		return
	}
	*waiting = append(*waiting, append([]byte(nil), frame...))
	e.round.held++
}

// sendWaiting sends the packets held for a path. Packets that cannot be sent now are dropped.
func (p *Path) sendWaiting(e *Engine) {
	waiting := p.waitingFor(e)
	for _, waited := range *waiting {
		frame, reason, send := p.frameFor(e)
		if !send {
			e.counters.Drops[reason]++
			continue
		}
		copy(frame, waited)
		copy(frame, p.ethernet[:])
		e.link.Commit(len(waited))
	}
	if len(*waiting) > 0 {
		e.round.held -= len(*waiting)
		*waiting = nil
		e.flushLink()
	}
}

// frameFor reserves a frame for a held packet, or returns the reason for dropping it.
func (p *Path) frameFor(e *Engine) (frame []byte, reason Drop, send bool) {
	switch {
	case e.tables.down:
		return nil, DropLinkDown, false
	case p.state != PathOpen:
		return nil, DropUnreachable, false
	}
	frame = e.link.Reserve()
	return frame, DropUnresolved, frame != nil
}
