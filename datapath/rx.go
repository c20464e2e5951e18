package datapath

import (
	"slices"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// arrival is the scratch of receiving: the packet in hand, and the receive request that takes it.
// There are two, one for packets from the link and one for packets that this card sends to itself,
// so that sending and receiving share none.
type arrival struct {
	packet  wire.Packet
	packets uint64 // that it says it stands for
	sender  *QP    // the queue pair of this card that sent it; nil: it came from the link
	marked  bool   // by a queue on its way
	recv    ring.Recv
}

// receive processes a burst from the link, or what the budget of earlier rounds left of one. The
// frames are borrowed until Release. Each copy to a group member counts against the budget, so
// that large groups do not make a round long.
func (e *Engine) receive(how listening) bool {
	e.budget, e.hand = receiveBudget, nil
	resumed := e.arriving.resume(e, &e.rx)
	if e.others != nil {
		resumed = e.others.sendRelayed() || resumed
		if some, ready := e.others.receiveHanded(); !ready {
			return resumed || some
		} else if some {
			resumed = true
		}
	}
	if e.taken == 0 {
		e.taken = e.glancing.look(e.link, how)
	}
	if e.taken == 0 {
		return resumed
	}
	for e.seen < e.taken && e.budget > 0 {
		if e.count >= fetchFrom && e.seen%fetchAhead == 0 {
			e.fetch(e.link)
		}
		e.seen++
		frame := e.link.Next()
		e.budget -= 1 + len(frame)/maxFrame
		if e.others != nil && e.others.passOn(frame) {
			if e.others.crowded() {
				break
			}
		} else if len(e.taps.list) == 0 {
			e.receiveFrame(&e.rx, frame)
		} else {
			e.tap(false, frame, func() { e.receiveFrame(&e.rx, frame) })
		}
	}
	if e.seen == e.taken && !e.arriving.pending() {
		e.link.Release()
		e.taken, e.seen = 0, 0
	}
	return true
}

// glancesInARow is how many looks at a link that has nothing are short, before all of it is asked again.
const glancesInARow = 3

// glancing is how a link is looked at that is quicker to glance at.
type glancing struct {
	link.Glancer     // the link, if it is one; else nil
	left         int // looks from now on that are short
}

// look has the link take packets that have arrived.
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

// receiveFrame makes the checks that do not depend on the receiver, once, and delivers the packet.
func (e *Engine) receiveFrame(a *arrival, frame []byte) {
	p := &a.packet
	e.hand, a.packets = nil, 1
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
	switch pair, reason := e.checkAddresses(p); {
	case reason != DropNone:
		e.counters.Drops[reason] += a.packets
	case pair.group:
		e.arriving.deliver(e, a, frame, pair.members, nil)
	default:
		e.deliver(a)
	}
}

// deliver gives a packet to the queue pair whose number is in it.
func (e *Engine) deliver(a *arrival) {
	number := a.packet.BTH().DestQP()
	if number == wire.QPNMulticast {
		e.counters.Drops[DropGroupQPN] += a.packets
		return
	}
	qp := e.qps[number%maxQPs]
	if qp == nil || qp.Number != number {
		e.counters.Drops[DropUnknownQP] += a.packets
		return
	}
	e.deliverTo(qp, a)
}

// deliverTo gives a packet to a queue pair and counts the result.
func (e *Engine) deliverTo(qp *QP, a *arrival) {
	e.hand = qp.Session
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

// loopBack delivers a packet that is for this card itself: XDP never sees what the host sends. Its sender is
// known, whatever its headers say.
func (e *Engine) loopBack(sender *QP, d *departure, frame []byte, length int) {
	if e.others != nil && e.others.sendAcross(sender, d, frame, length) {
		return
	}
	if e.parseOwn(&d.looped, sender, frame, length) {
		e.deliverOwn(&d.looped)
		e.hand = sender.Session
	}
}

// deliverOwn is deliver for a packet that this card sends to itself. What goes wrong there is not the sender's.
func (e *Engine) deliverOwn(a *arrival) {
	defer e.contain()
	e.deliver(a)
}

// loopBackGroup delivers a packet to the members of its group on this card. The frame also goes
// out on the link, and the next packet may be built in it, so later rounds work on a copy.
func (e *Engine) loopBackGroup(d *departure, frame []byte, length int, members []*QP, sender *QP) {
	if !e.parseOwn(&d.looped, sender, frame, length) {
		return
	}
	f := &e.looping
	e.deliverOwnGroup(&d.looped, f, frame, members, sender)
	e.hand = sender.Session
	if f.pending() {
		f.own = append(f.own[:0], frame...)
		f.frame = f.own
	}
}

func (e *Engine) deliverOwnGroup(a *arrival, f *fanout, frame []byte, members []*QP, sender *QP) {
	defer e.contain()
	f.deliver(e, a, frame, members, sender)
}

// parseOwn counts and parses a packet that this card sends to itself. Its ICRC needs no check.
func (e *Engine) parseOwn(a *arrival, sender *QP, frame []byte, length int) bool {
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

// faultDrop is the drop reason for a fault that Parse found.
func faultDrop(f wire.Fault) Drop { return Drop(f-wire.FaultNotRoCE) + DropNotRoCE }

// checkAddresses compares a packet with the card's own addresses, because switches flood unicast
// and reflect frames that we sent. Many packets in a row are of the same two hosts, so the last
// pair that passed is kept. The steering program makes the same checks; its source (bpf/headers.h)
// says which of them are the kernel's rules.
func (t *tables) checkAddresses(p *wire.Packet) (*passedPair, Drop) {
	passed := &t.passed
	if id, tagged := p.VLAN(); tagged != (t.vlan != 0) || tagged && id != t.vlan {
		return passed, DropVLAN
	}
	if mac := p.DestinationMAC(); !mac.IsGroup() && len(t.macs) > 0 && !slices.Contains(t.macs, mac) {
		return passed, DropOtherHost
	}
	pair := p.Addresses()
	if string(pair) == string(passed.addresses[:passed.length]) {
		return passed, DropNone
	}
	dest := p.Destination()
	reason := t.checkDestination(dest, p.IsIPv6())
	if reason == DropNone && !passed.hasSource(pair) {
		reason = t.checkSource(p.Source(), p.IsIPv6())
	}
	if reason != DropNone {
		return passed, reason
	}
	passed.length = copy(passed.addresses[:], pair)
	passed.group = dest.IsMulticast()
	passed.members = nil
	if !dest.StaysInHost() {
		passed.members = t.groups[dest]
	}
	return passed, DropNone
}

// checkDestination checks an address that a packet is for. A mapped one is of IPv4, in an IPv6 header.
func (t *tables) checkDestination(dest wire.GID, v6 bool) Drop {
	mapped, own := v6 && dest.IsIPv4(), dest.IsMulticast()
	if !own {
		_, own = t.own[dest]
	}
	if mapped || !own {
		return DropNotOwn
	}
	return DropNone
}

// checkSource checks an address that differs from that of the last packet.
func (t *tables) checkSource(source wire.GID, v6 bool) Drop {
	_, own := t.own[source]
	_, broadcast := t.broadcasts[source]
	mapped := v6 && source.IsIPv4()
	switch {
	case !mapped && source.IsMulticast():
		return DropGroupSource
	case mapped, source.IsMartian():
		return DropMartianSource
	case own:
		return DropOwnSource
	case broadcast:
		return DropMartianSource
	}
	return DropNone
}

// passedPair holds the addresses of the last packet that passed checkAddresses.
type passedPair struct {
	addresses [32]byte
	length    int
	group     bool  // the destination is a group
	members   []*QP // of the group
}

// hasSource says whether a pair has the same source.
func (passed *passedPair) hasSource(pair []byte) bool {
	half := passed.length / 2
	return passed.length == len(pair) && string(pair[:half]) == string(passed.addresses[:half])
}
