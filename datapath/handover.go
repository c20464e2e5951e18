// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync"

	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/wire"
)

// siblings connects an engine with the other engines of its card (package peers). A packet that arrives at one engine
// for a session of another is handed over: the other engine receives it before the frames of its own link. Packets from
// a queue pair of one engine to queue pairs of another are handed over too.
//
//	link ─► passOn ──────┐                     ┌─► arrival.receive ─► as packets from the link
//	departure.loopBack ──┼─► Hand ··► Take ─► receiveOne
//	launchToGroup ───────┘                     └─► deliver ─────────► as packets sent by this engine
//
// The embedded Peer is nil if the card has a single engine.
type siblings struct {
	*peers.Peer
	engine  *Engine
	looped  arrival     // the current packet, if another engine's queue pair has sent it
	atomics *sync.Mutex // see peers.Card; nil without siblings
}

func (s *siblings) join(e *Engine, card *peers.Card) (err error) {
	var wake func()
	if e.memory != nil {
		wake = func() { e.runner.Arrived() }
	}
	s.engine, s.looped.engine, s.atomics = e, e, &card.Atomics
	s.Peer, err = card.Join(func() { e.runner.Call() }, wake)
	return err
}

// passOn hands over a frame from the link, if it is for another engine. It reports whether the frame needs no further
// processing by this engine. It parses the headers only; the receiving engine makes all checks.
func (s *siblings) passOn(frame []byte) (done bool) {
	p := &s.engine.rx.packet
	if wire.Parse(frame, p) != wire.FaultNone {
		return false
	}
	number := p.BTH().DestQP()
	if number == wire.QPNMulticast {
		return s.passOnToGroup(p.Destination(), frame)
	}
	to := s.Route(number)
	if len(to) == 0 {
		return false
	}
	s.Hand(to, false, peers.Packet{Frame: frame})
	return true
}

// passOnToGroup is passOn for a packet to a group, which may have members at this engine too.
func (s *siblings) passOnToGroup(dest wire.GID, frame []byte) (done bool) {
	to, own := s.RouteToGroup(dest), len(s.engine.tables.groups[dest]) > 0
	s.Hand(to, own, peers.Packet{Frame: frame})
	return len(to) > 0 && !own
}

// route sets d.across to the engines that a datagram is for, and reports whether each of them has room for it.
func (s *siblings) route(d *departure, ah *AH) (room bool) {
	switch {
	case ah.Group:
		d.across = s.RouteToGroup(ah.Dest)
	case ah.Path.state == PathLocal:
		d.across = s.Route(d.send.RemoteQPN)
	default:
		d.across = nil
	}
	return !d.across.Full()
}

// receive processes packets that other engines have handed over, using at most half of the budget. some reports whether
// there were any, ready whether the frames of the link can be processed next.
func (s *siblings) receive() (some, ready bool) {
	e := s.engine
	kept := e.round.budget / 2
	for e.round.budget -= kept; e.round.budget > 0; some = true {
		p := s.Take()
		if p == nil {
			break
		}
		e.round.budget -= 1 + len(p.Frame)/maxFrame
		if s.receiveOne(p); len(p.Frame) > maxFrame {
			p.Frame = nil // long frames are rare and large: release their memory
		}
	}
	e.round.budget += kept
	return some, !e.round.arriving.pending() && !s.Blocked()
}

// receiveOne processes one handed-over packet. A copy is counted in Copies only: another engine has counted the packet
// as received.
func (s *siblings) receiveOne(p *peers.Packet) {
	e := s.engine
	c := &e.counters
	bytes, marked, looped := c.ReceivedBytes, c.ECNMarked, c.Loopback
	if p.Copied {
		c.Received--
		c.Copies++
	}
	switch {
	case p.Sender != 0:
		s.deliver(p)
	case len(e.taps.list) == 0 || p.Copied:
		e.rx.receive(p.Frame)
	default:
		e.taps.watch(false, p.Frame, func() { e.rx.receive(p.Frame) })
	}
	if p.Copied {
		c.ReceivedBytes, c.ECNMarked, c.Loopback = bytes, marked, looped
	}
}

// deliver delivers a packet that was sent by a queue pair of another engine.
func (s *siblings) deliver(p *peers.Packet) {
	e, a := s.engine, &s.looped
	e.round.hand = nil
	if !a.parseOwn(p.Sender, p.Frame, p.Length) {
		return
	}
	if dest := a.packet.Destination(); dest.IsMulticast() {
		e.round.arriving.deliver(a, p.Frame, e.tables.groups[dest], p.Sender)
	} else {
		a.deliver()
	}
}

// sendRelayed sends frames of other engines' links on this engine's link, at most sendBudget in a round. If the link
// has no room, the next round continues. It reports whether it has sent or dropped any.
func (s *siblings) sendRelayed() (some bool) {
	for range sendBudget {
		frame := s.NextRelayed()
		if frame == nil || !s.sendFor(frame) {
			break
		}
		s.Relayed()
		some = true
	}
	return some
}

// sendFor sends or drops a frame of another engine's link. It returns false if the link has no room.
func (s *siblings) sendFor(frame []byte) (done bool) {
	e := s.engine
	if e.tables.down {
		e.counters.Drops[DropLinkDown]++
		return true
	}
	e.round.blocked = true // a flush sends the frame, or makes room for it
	room := e.link.Reserve()
	if room == nil {
		return false
	}
	if len(frame) > len(room) {
		e.counters.Drops[DropPathMTU]++
		return true
	}
	e.link.Commit(copy(room, frame))
	return true
}
