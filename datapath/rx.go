// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
)

// receive processes a burst from the link, or the rest of a burst that exceeded the budget of earlier rounds, and
// reports whether it did anything. The frames are borrowed until Release. Each copy to a group member counts against
// the budget, so that large groups do not make rounds long.
func (e *Engine) receive(how listening) bool {
	e.round.budget, e.round.hand = receiveBudget, nil
	resumed := e.round.arriving.resume(&e.rx)
	if e.peers.Peer != nil {
		resumed = e.peers.sendRelayed() || resumed
		if some, ready := e.peers.receive(); !ready {
			return resumed || some
		} else if some {
			resumed = true
		}
	}
	if e.round.taken == 0 {
		e.round.taken = e.glancing.look(e.link, how)
	}
	if e.round.taken == 0 {
		return resumed
	}
	for e.round.seen < e.round.taken && e.round.budget > 0 {
		if e.tables.count >= fetchFrom && e.round.seen%fetchAhead == 0 {
			e.tables.fetch(e.link)
		}
		e.round.seen++
		frame := e.link.Next()
		e.round.budget -= 1 + len(frame)/maxFrame
		if e.peers.Peer != nil && e.peers.passOn(frame) {
			if e.peers.Blocked() {
				break
			}
		} else if len(e.taps.list) == 0 {
			e.rx.receive(frame)
		} else {
			e.taps.watch(false, frame, func() { e.rx.receive(frame) })
		}
	}
	if e.round.seen == e.round.taken && !e.round.arriving.pending() {
		e.link.Release()
		e.round.taken, e.round.seen = 0, 0
	}
	return true
}

// glancesInARow is the number of fast polls of an idle link between two complete ones.
const glancesInARow = 3

// glancing polls a link that may also have a faster, incomplete poll (link.Glancer).
type glancing struct {
	link.Glancer     // the link, if it implements Glancer; else nil
	left         int // number of fast polls until the next complete one
}

// look polls the link and returns the number of packets that have arrived.
func (g *glancing) look(l link.Link, how listening) (packets int) {
	if how == glances && g.left > 0 {
		g.left--
		return g.Glance()
	}
	if packets, g.left = l.Receive(), 0; packets == 0 && g.Glancer != nil {
		g.left = glancesInARow
	}
	return packets
}

// receive makes the checks that do not depend on the receiving queue pair, once per packet, and delivers the packet.
func (a *arrival) receive(frame []byte) {
	e, p := a.engine, &a.packet
	e.round.hand, a.packets = nil, 1
	fault := wire.Parse(frame, p)
	if e.memory != nil && fault == wire.FaultNone && p.BTH().DestQP() != wire.QPNMulticast {
		a.packets = uint64(p.BTH().Packets())
	}
	e.counters.Received += a.packets
	if fault != wire.FaultNone {
		e.counters.Drops[faultDrop(fault)]++
		return
	}
	if !(e.memory != nil && p.Unsealed()) && !p.CheckICRC() && !e.numbering.solve(p) {
		e.counters.Drops[DropICRC] += a.packets
		return
	}
	e.counters.ReceivedBytes += uint64(len(p.Payload()))
	if a.marked = p.Marked(); a.marked {
		e.counters.ECNMarked += a.packets
	}
	switch pair, reason := e.tables.checkAddresses(p); {
	case reason != DropNone:
		e.counters.Drops[reason] += a.packets
	case pair.group:
		e.round.arriving.deliver(a, frame, pair.members, 0)
	default:
		a.deliver()
	}
}
