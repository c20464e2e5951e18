package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// receive takes a burst from the link, or what a round's budget left of the last one; its
// frames are borrowed until Release. Each costs its copies, so that groups of many members
// do not make a round long.
func (e *Engine) receive() bool {
	e.budget = receiveBudget
	resumed := e.resume(&e.arriving)
	if e.taken == 0 {
		e.taken = e.link.Receive(e.burst[:])
	}
	if e.taken == 0 {
		return resumed
	}
	for e.next < e.taken && e.budget > 0 {
		e.budget--
		e.next++
		e.receiveFrame(e.burst[e.next-1])
	}
	if e.next == e.taken && !e.arriving.pending() {
		e.link.Release()
		e.taken, e.next = 0, 0
	}
	return true
}

// receiveFrame checks what is the packet's own affair, once, and delivers it.
func (e *Engine) receiveFrame(frame []byte) {
	p := &e.packet
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
	if reason, ok := e.checkAddresses(p); !ok {
		e.counters.Drops[reason]++
		return
	}
	if e.passed.group {
		e.deliverGroup(&e.arriving, frame, e.passed.members, nil)
	} else {
		e.deliver(p)
	}
}

// deliver finds the packet's destination. The queue pair's own checks follow.
func (e *Engine) deliver(p *wire.Packet) {
	number := p.BTH().DestQP()
	if number == wire.QPNMulticast {
		e.counters.Drops[DropGroupQPN]++
		return
	}
	qp := e.qps[number%maxQPs]
	if qp == nil || qp.Number != number {
		e.counters.Drops[DropUnknownQP]++
		return
	}
	e.countDelivery(e.deliverTo(qp, p))
}

func (e *Engine) countDelivery(length int, reason Drop, delivered bool) {
	if !delivered {
		e.counters.Drops[reason]++
		return
	}
	e.counters.Delivered++
	e.counters.DeliveredBytes += uint64(length)
}

// deliverTo is the ladder: state, service, P_Key, Q_Key, length, a receive
// request that fits. Until the request is taken nothing has changed.
func (e *Engine) deliverTo(qp *QP, p *wire.Packet) (length int, reason Drop, delivered bool) {
	bth := p.BTH()
	length = len(p.Payload())
	switch {
	case !qp.State.Receives():
		return length, DropQPState, false
	case bth.Opcode() == wire.OpcodeCNP:
		return length, DropCongestion, false
	case bth.Opcode().Service() != wire.ServiceUD:
		return length, DropUnsupported, false
	case !qp.PKey.Matches(bth.PKey()):
		return length, DropPKey, false
	case qp.QKey != p.DETH().QKey():
		return length, DropQKey, false
	case length > e.mtu:
		return length, DropTooLong, false
	case !qp.Recv.Peek(&e.recv):
		return length, DropNoReceive, false
	case recvRoom(&e.recv) < uint64(wire.GRHLen+length):
		return length, DropNoRoom, false
	}
	reason, delivered = e.take(qp, p)
	return length, reason, delivered
}

// recvRoom is the length of a receive request's memory, in bytes.
func recvRoom(r *ring.Recv) (room uint64) {
	for _, s := range r.SGEs[:r.SGECount] {
		room += uint64(s.Length)
	}
	return room
}

// take uses the receive request in e.recv for the packet.
func (e *Engine) take(qp *QP, p *wire.Packet) (Drop, bool) {
	pieces, ok := e.resolve(e.recv.SGEs[:e.recv.SGECount], qp.PD, true)
	qp.Recv.Advance()
	if !ok {
		e.completeRecv(qp, ring.WCLocProtErr)
		e.fail(qp, false)
		return DropProtection, false
	}
	e.scatter(pieces, p)
	if !e.completePacket(qp, p) {
		return DropCQFull, false
	}
	return 0, true
}

// resolve finds the memory of a list of SGEs.
func (e *Engine) resolve(sges []ring.SGE, pd PD, write bool) ([][]byte, bool) {
	for i, s := range sges {
		piece := e.memory(s, pd, write)
		if piece == nil && s.Length != 0 {
			return nil, false
		}
		e.pieces[i] = piece
	}
	return e.pieces[:len(sges)], true
}

// scatter writes the GRH and the payload into the request's memory.
func (e *Engine) scatter(pieces [][]byte, p *wire.Packet) {
	payload := p.Payload()
	if first := pieces[0]; len(first) >= wire.GRHLen+len(payload) {
		p.PutGRH((*[wire.GRHLen]byte)(first))
		copy(first[wire.GRHLen:], payload)
		return
	}
	var grh [wire.GRHLen]byte
	p.PutGRH(&grh)
	from := grh[:]
	for _, piece := range pieces {
		for len(piece) > 0 && len(from)+len(payload) > 0 {
			if len(from) == 0 {
				from, payload = payload, nil
			}
			n := copy(piece, from)
			piece, from = piece[n:], from[n:]
		}
	}
}

// completePacket tells the program of a packet that lies in its memory.
func (e *Engine) completePacket(qp *QP, p *wire.Packet) bool {
	c := &e.cqe
	c.Set(e.recv.ID, ring.WCSuccess, ring.WCRecv, qp.Number, qp.Token)
	c.Flags, c.ByteLen, c.SourceQP = ring.WCGRH|ring.WCWithSMAC|ring.WCWithNetworkHdrType, uint32(wire.GRHLen+len(p.Payload())), p.DETH().SrcQP()
	if p.Has(wire.HeaderImm) {
		c.Flags |= ring.WCWithImm
		c.Imm = p.Imm()
	}
	putFrame(c, p)
	return e.complete(qp.RecvCQ, c, p.BTH().Solicited())
}

// putFrame tells what the frame was that a packet came in.
func putFrame(c *ring.CQE, p *wire.Packet) {
	c.SMAC, c.NetworkHeader, c.Port = p.SourceMAC(), ring.NetworkIPv4, 1
	if p.IsIPv6() {
		c.NetworkHeader = ring.NetworkIPv6
	}
	c.SL = p.Priority()
	if id, tagged := p.VLAN(); tagged {
		c.Flags |= ring.WCWithVLAN
		c.VLAN = id
	}
}
