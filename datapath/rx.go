package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// arrival is a packet on its way to queue pairs, and what its delivery has in hand. Packets from
// the link have one, and packets of this device another: a packet that is sent may be delivered
// here, and one that is received may be answered.
type arrival struct {
	packet wire.Packet
	recv   ring.Recv           // the receive request that it takes
	pieces [ring.MaxSGE][]byte // the request's memory
	cqe    ring.CQE
}

// receive takes a burst from the link, or what a round's budget left of the last one; its
// frames are borrowed until Release. Each costs its copies, so that groups of many members
// do not make a round long.
func (e *Engine) receive() bool {
	e.budget = receiveBudget
	resumed := e.resume(&e.rx, &e.arriving)
	if e.taken == 0 {
		e.taken = e.link.Receive(e.burst[:])
	}
	if e.taken == 0 {
		return resumed
	}
	for e.next < e.taken && e.budget > 0 {
		e.budget--
		e.next++
		e.receiveFrame(&e.rx, e.burst[e.next-1])
	}
	if e.next == e.taken && !e.arriving.pending() {
		e.link.Release()
		e.taken, e.next = 0, 0
	}
	return true
}

// receiveFrame checks what is the packet's own affair, once, and delivers it.
func (e *Engine) receiveFrame(a *arrival, frame []byte) {
	p := &a.packet
	e.counters.Received++
	if fault := wire.Parse(frame, p); fault != wire.FaultNone {
		e.counters.Drops[faultDrop(fault)]++
		return
	}
	if !p.CheckICRC() {
		e.counters.Drops[DropICRC]++
		return
	}
	e.counters.ReceivedBytes += uint64(len(p.Payload()))
	switch pair, reason := e.checkAddresses(p); {
	case reason != DropNone:
		e.counters.Drops[reason]++
	case pair.group:
		e.deliverGroup(a, &e.arriving, frame, pair.members, nil)
	default:
		e.deliver(a)
	}
}

// deliver finds the queue pair that a packet is for.
func (e *Engine) deliver(a *arrival) {
	number := a.packet.BTH().DestQP()
	if number == wire.QPNMulticast {
		e.counters.Drops[DropGroupQPN]++
		return
	}
	qp := e.qps[number%maxQPs]
	if qp == nil || qp.Number != number {
		e.counters.Drops[DropUnknownQP]++
		return
	}
	e.deliverTo(qp, a)
}

// deliverTo gives a packet to a queue pair, by the checks of its service, and counts what
// became of it.
func (e *Engine) deliverTo(qp *QP, a *arrival) {
	if reason := e.receiveUD(qp, a); reason != DropNone {
		e.counters.Drops[reason]++
		return
	}
	e.counters.Delivered++
	e.counters.DeliveredBytes += uint64(len(a.packet.Payload()))
}
