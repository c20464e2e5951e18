// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/wire"
)

// transmit sends requests of the queue pairs with work left, flushes the link once, and reports whether anything was
// done. All queue pairs share the round's budget and take turns; the order of turns continues in the next round.
func (e *Engine) transmit() (moved bool) {
	e.round.budget, e.round.hand = sendBudget, nil
	resumed, rung := e.round.looping.resume(&e.tx.looped), e.doorbells.collect(e.round.budget)
	moved = resumed || rung
	visits := e.round.budget // limits the turns of queue pairs that have nothing to send
	for ; visits > 0 && e.round.budget > 0 && !e.round.looping.pending(); visits-- {
		qp := e.round.turns.next()
		if qp == nil {
			break
		}
		e.round.hand = qp.Session
		some, done := qp.service.send(&e.tx)
		if moved = moved || some || done; !done {
			e.round.turns.add(qp)
		}
	}
	if moved || !e.round.turns.empty() || e.round.blocked {
		moved = e.flushLink() || moved
	}
	return moved
}

// launch dispatches a packet of n bytes with a payload of length bytes, and passes it to the taps.
func (d *departure) launch(qp *QP, path *Path, frame []byte, n, length int) {
	if e := d.engine; len(e.taps.list) == 0 {
		d.dispatch(qp, path, frame, n, length)
	} else {
		e.taps.watch(true, frame[:n], func() { d.dispatch(qp, path, frame, n, length) })
	}
}

// dispatch sends, holds or delivers a packet according to the state of its path, or counts the reason for dropping it.
func (d *departure) dispatch(qp *QP, path *Path, frame []byte, n, length int) {
	e := d.engine
	switch {
	case path.state == PathLocal:
		d.loopBack(qp, frame[:n], length)
	case e.tables.down: // before PathUnreachable: the neighbour may be unreachable only because the link is down
		e.counters.Drops[DropLinkDown]++
	case path.state == PathUnreachable:
		e.counters.Drops[DropUnreachable]++
	case !e.tables.carries(path, length): // the port's MTU may have fallen below the connection's
		e.counters.Drops[DropPathMTU]++
		if c, is := qp.service.(*Connection); is {
			c.NoteTooLong()
		}
	case path.state == PathResolving:
		path.hold(e, frame[:n])
	default:
		e.link.Commit(n)
	}
}

// loopBack delivers a packet that this card sends to itself, as XDP does not receive packets that the host sends. The
// sender is passed separately, because the headers come from the program.
func (d *departure) loopBack(sender *QP, frame []byte, length int) {
	e := d.engine
	if len(d.across) > 0 {
		e.peers.Hand(d.across, false, peers.Packet{Frame: frame, Sender: sender.Number, Length: length})
		return
	}
	if d.looped.parseOwn(sender.Number, frame, length) {
		d.looped.deliverOwn()
		e.round.hand = sender.Session
	}
}

// loopBackGroup delivers a packet to the members of its group on this card. The frame is also sent on the link, and the
// next packet may be built in it, so later rounds use a copy.
func (d *departure) loopBackGroup(frame []byte, length int, members []*QP, sender *QP) {
	e := d.engine
	if !d.looped.parseOwn(sender.Number, frame, length) {
		return
	}
	f := &e.round.looping
	d.looped.deliverOwnGroup(f, frame, members, sender.Number)
	e.round.hand = sender.Session
	if f.pending() {
		f.own = append(f.own[:0], frame...)
		f.frame = f.own
	}
}

// numbering assigns the IPv4 identification of packets, unless the link assigns it (see link.Link).
type numbering struct {
	id     uint16          // of the next packet
	solver *wire.Numbering // finds it in received packets, if the link does not deliver it; else nil
}

func newNumbering(l link.Link) (n numbering) {
	if l.Numbers() {
		n.solver = new(wire.Numbering)
	}
	return n
}

// nextID returns the identification of the next packet to send; 0 if the link assigns it.
func (n *numbering) nextID() uint16 {
	if n.solver != nil {
		return 0
	}
	n.id++
	return n.id - 1
}

// solve searches for the IPv4 identification that the link has not delivered, and reports whether the packet's ICRC is
// correct with it. If so, it stores the identification in the packet.
func (n *numbering) solve(p *wire.Packet) bool { return n.solver != nil && n.solver.Solve(p) }
