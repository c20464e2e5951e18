// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/wire"
)

// deliver delivers a packet to its destination queue pair.
func (a *arrival) deliver() {
	e := a.engine
	number := a.packet.BTH().DestQP()
	if number == wire.QPNMulticast {
		e.counters.Drops[DropGroupQPN] += a.packets
		return
	}
	qp := e.tables.qps[number%maxQPs]
	if qp == nil || qp.Number != number {
		e.counters.Drops[DropUnknownQP] += a.packets
		return
	}
	a.deliverTo(qp)
}

// deliverTo delivers a packet to a queue pair and counts the result.
func (a *arrival) deliverTo(qp *QP) {
	e := a.engine
	e.round.hand = qp.Session
	if reason := qp.service.receive(a); reason != DropNone {
		e.counters.Drops[reason] += a.packets
		return
	}
	e.counters.Delivered += a.packets
	e.counters.DeliveredBytes += uint64(len(a.packet.Payload()))
	if qp.tally != nil {
		qp.tally.received(a.packets, len(a.packet.Payload()))
	}
}

// deliverOwn is deliver for a packet that this card sends to itself. It contains a fault of the receiver, so that the
// sender's session is not ended for it.
func (a *arrival) deliverOwn() {
	defer a.engine.contain()
	a.deliver()
}

func (a *arrival) deliverOwnGroup(f *fanout, frame []byte, members []*QP, sender wire.QPN) {
	defer a.engine.contain()
	f.deliver(a, frame, members, sender)
}

// parseOwn counts and parses a packet that this card sends to itself, and reports whether it is well-formed. Its ICRC
// needs no check.
func (a *arrival) parseOwn(sender wire.QPN, frame []byte, length int) bool {
	e := a.engine
	a.sender, a.packets = sender, 1
	e.counters.Loopback++
	e.counters.Received++
	e.counters.ReceivedBytes += uint64(length)
	fault := wire.Parse(frame, &a.packet)
	if fault != wire.FaultNone {
		e.counters.Drops[faultDrop(fault)]++
	}
	return fault == wire.FaultNone
}

// faultDrop returns the drop reason for a fault that wire.Parse returned.
func faultDrop(f wire.Fault) Drop { return Drop(f-wire.FaultNotRoCE) + DropNotRoCE }

// fanout is the delivery of a packet to the members of a group. A group may have thousands of members, so a fanout
// continues in the next round when the budget ends. There are two: one for packets from the link, and one for packets
// that this card sent.
type fanout struct {
	frame   []byte // borrowed, or in own, until the fanout ends
	own     []byte // a copy of a frame that is not borrowed for that long
	members []*QP
	next    int      // index of the next member to receive the packet
	sender  wire.QPN // the queue pair of this card that sent the packet; 0: another host
}

func (f *fanout) pending() bool { return f.next < len(f.members) }

// deliver delivers the packet to each member of the group. Checks and results are separate for each member. Members
// beyond the round's budget stay in f.
func (f *fanout) deliver(a *arrival, frame []byte, members []*QP, sender wire.QPN) {
	e, p := a.engine, &a.packet
	switch {
	case p.BTH().DestQP() != wire.QPNMulticast:
		e.counters.Drops[DropGroupQPN]++
		return
	case len(members) == 0:
		e.counters.Drops[DropNoGroup]++
		return
	}
	f.frame, f.members, f.next, f.sender = frame, members, 0, sender
	e.counters.Copies--
	f.copyOut(a)
}

// copyOut delivers the packet to the next members: to one, and to more until the budget is used up.
func (f *fanout) copyOut(a *arrival) {
	e := a.engine
	for f.pending() {
		qp := f.members[f.next]
		f.next++
		e.counters.Copies++
		if qp.Number == f.sender && qp.NoSelfLoopback {
			e.counters.Drops[DropSelfLoopback]++
		} else {
			a.deliverTo(qp)
		}
		if e.round.budget--; e.round.budget <= 0 {
			return
		}
	}
}

// resume continues a fanout that an earlier round left, and reports whether there was one. The packet passed all checks
// in that round, so parsing it cannot fail.
func (f *fanout) resume(a *arrival) bool {
	if !f.pending() {
		return false
	}
	a.packets = 1
	if wire.Parse(f.frame, &a.packet) == wire.FaultNone {
		f.copyOut(a)
	}
	return true
}

// keepMembers removes from a group's fanout the queue pairs that are no longer attached to the group.
func (f *fanout) keepMembers(mgid wire.GID, members []*QP) {
	var p wire.Packet
	if !f.pending() || wire.Parse(f.frame, &p) != wire.FaultNone || p.Destination() != mgid {
		return
	}
	attached := make(map[*QP]struct{}, len(members))
	for _, qp := range members {
		attached[qp] = struct{}{}
	}
	var rest []*QP // a copy: f.members belongs to the group
	for _, qp := range f.members[f.next:] {
		if _, ok := attached[qp]; ok {
			rest = append(rest, qp)
		}
	}
	f.members, f.next = rest, 0
}
