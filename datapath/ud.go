// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Datagrams is the unreliable datagram service (UD) of a queue pair.
//
//	receive   checks in a fixed order → take: memory, scatter, completion
//	sendOne   copy the request → check: the copy → build: gather, seal, dispatch → completion
type Datagrams struct {
	engine *Engine
	qp     *QP
	next   wire.PSN // of the next packet to send
}

func (u *Datagrams) open(e *Engine, qp *QP) { u.engine, u.qp = e, qp }

func (u *Datagrams) psn() *wire.PSN { return &u.next }

func (u *Datagrams) touch() uint32 { return uint32(u.next) }

// A UD queue pair needs no action when its state changes or when it is removed.

func (u *Datagrams) enter(ib.QPState) {}
func (u *Datagrams) flush()           {}
func (u *Datagrams) halt()            {}
func (u *Datagrams) close()           {}

// leaving implements QP.Leaving.
func (u *Datagrams) leaving() bool { return u.qp.Send.Waiting() > 0 }

// receive checks a packet in this order: state, service, P_Key, Q_Key, length, and the presence and size of a receive
// request in the queue pair's receive queue or SRQ. A packet that fails a check consumes no receive request.
func (u *Datagrams) receive(a *arrival) Drop {
	e, qp, p := u.engine, u.qp, &a.packet
	bth := p.BTH()
	length := len(p.Payload())
	switch {
	case !qp.State.Receives():
		return DropQPState
	case bth.Opcode() == wire.OpcodeCNP:
		return DropCongestion
	case bth.Opcode().Service() != wire.ServiceUD:
		return DropUnsupported
	case !qp.PKey.Matches(bth.PKey()):
		return DropPKey
	case qp.QKey != p.DETH().QKey():
		return DropQKey
	case length > e.tables.mtu:
		return DropTooLong
	case !qp.Recv.Peek(&a.recv) && !qp.SRQ.peekNewer(&a.recv):
		return DropNoReceive
	case a.recv.List().Length() < uint64(wire.GRHLen+length):
		return DropNoRoom
	}
	return u.take(a)
}

// take consumes the current receive request and writes the packet to its memory.
func (u *Datagrams) take(a *arrival) Drop {
	e, qp := u.engine, u.qp
	ok := e.pieces.Find(&qp.Session.Table, a.recv.List(), qp.RecvPD, true, 0, wire.GRHLen+len(a.packet.Payload()))
	qp.Recv.Advance()
	if qp.SRQ != nil {
		e.completions.took(qp.SRQ)
	}
	if !ok {
		e.completions.completeRecv(qp, a.recv.ID, ib.WCLocProtErr)
		qp.fail(false)
		return DropProtection
	}
	scatter(&e.pieces, &a.packet)
	if !u.complete(a) {
		return DropCQFull
	}
	return DropNone
}

// scatter writes the GRH and the payload into the request's memory.
func scatter(pieces *region.Pieces, p *wire.Packet) {
	payload := p.Payload()
	if first := pieces.First(); len(first) >= wire.GRHLen+len(payload) {
		p.PutGRH((*[wire.GRHLen]byte)(first))
		copy(first[wire.GRHLen:], payload)
		return
	}
	var grh [wire.GRHLen]byte
	p.PutGRH(&grh)
	pieces.Scatter(0, grh[:])
	pieces.Scatter(wire.GRHLen, payload)
}

// complete writes the completion of a packet that has been written to the program's memory.
func (u *Datagrams) complete(a *arrival) bool {
	qp, c, p := u.qp, &u.engine.completions.cqe, &a.packet
	c.Set(a.recv.ID, ib.WCSuccess, ib.WCRecv, qp.Number, qp.CompletionToken)
	c.Flags, c.ByteLen, c.SourceQP = ib.WCGRH|ib.WCWithNetworkHdrType, uint32(wire.GRHLen+len(p.Payload())), p.DETH().SrcQP()
	if p.Has(wire.HeaderImm) {
		c.Flags |= ib.WCWithImm
		c.Imm = p.Imm()
	}
	if c.SMAC = p.SourceMAC(); c.SMAC != (wire.MAC{}) { // zero: the link does not deliver it
		c.Flags |= ib.WCWithSMAC
	}
	c.NetworkHeader, c.Port = ib.NetworkIPv4, 1
	if p.IsIPv6() {
		c.NetworkHeader = ib.NetworkIPv6
	}
	c.SL = p.Priority()
	if id, tagged := p.VLAN(); tagged {
		c.Flags |= ib.WCWithVLAN
		c.VLAN = id
	}
	return u.engine.completions.complete(qp.RecvCQ, c, p.BTH().Solicited())
}

// send sends requests, or flushes them.
func (u *Datagrams) send(d *departure) (moved, done bool) {
	e, qp := u.engine, u.qp
	defer qp.Send.Publish()
	for range sendTurn {
		switch {
		case qp.State == ib.QPStateSQE || qp.State == ib.QPStateErr:
			some, done := qp.flush()
			return some || moved, done
		case qp.State != ib.QPStateRTS || qp.Send.Available() == 0:
			return moved, true
		case e.round.budget <= 0 || e.round.looping.pending() || !u.sendOne(d):
			return moved, false
		}
		e.round.budget--
		moved = true
	}
	return true, false
}

// sendOne copies the next request, checks the copy and sends it. A local error stops the send queue (SQE). If the link
// has no free frame, sendOne changes nothing and returns false.
func (u *Datagrams) sendOne(d *departure) bool {
	e, qp := u.engine, u.qp
	data := qp.Send.Get(&d.send)
	ah, length, status := u.check(d, data)
	if status == ib.WCSuccess && !u.build(d, ah, length) {
		return false
	}
	if status == ib.WCSuccess {
		qp.Send.Advance(u.completeSend(&d.send))
		return true
	}
	e.completions.failSend(qp, d.send.ID, status)
	qp.Send.Advance(true)
	if qp.State != ib.QPStateErr { // the completion may have overrun the CQ
		qp.stopSending()
	}
	return true
}

// completeSend completes a sent request, if it is signaled.
func (u *Datagrams) completeSend(s *ring.Send) (signaled bool) {
	qp, cqe := u.qp, &u.engine.completions.cqe
	if !qp.SigAll && s.Flags&ib.SendSignaled == 0 {
		return false
	}
	cqe.Set(s.ID, ib.WCSuccess, ib.WCSend, qp.Number, qp.CompletionToken)
	u.engine.completions.complete(qp.SendCQ, cqe, false)
	return true
}

// build builds the packet of a request, first the payload and then the headers and ICRC, and sends it. It returns false
// if the link has no free frame, or another engine that receives the packet has no room for it.
func (u *Datagrams) build(d *departure, ah *AH, length int) bool {
	e := u.engine
	frame := d.frame
	if ah.Path.state == PathOpen && !e.tables.down {
		if frame = e.link.Reserve(); frame == nil {
			return false
		}
	}
	if e.peers.Peer != nil && !e.peers.route(d, ah) {
		return false
	}
	u.describe(d)
	payload := frame[ah.Template.PayloadOffset(d.datagram.HasImm):]
	d.pieces.Gather(payload)
	u.next = u.next.Plus(1)
	n := ah.Template.Seal(frame, &d.datagram, length)
	copy(frame, ah.Path.ethernet[:])
	e.counters.Sent++
	e.counters.SentBytes += uint64(length)
	if u.qp.tally != nil {
		u.qp.tally.sent(1, length)
	}
	if !ah.Group {
		d.launch(u.qp, ah.Path, frame, n, length)
		return true
	}
	u.launchToGroup(d, ah, frame, n, length)
	return true
}

// launchToGroup is departure.launch for a packet to a group. The members on this card receive the packet too.
func (u *Datagrams) launchToGroup(d *departure, ah *AH, frame []byte, n, length int) {
	e, members := u.engine, u.engine.tables.groups[ah.Dest]
	if len(d.across) > 0 {
		e.peers.Hand(d.across, len(members) > 0, peers.Packet{Frame: frame[:n], Sender: u.qp.Number, Length: length})
		d.across = nil
	}
	dispatch := func() {
		if len(members) > 0 {
			d.loopBackGroup(frame[:n], length, members, u.qp)
		}
		d.dispatch(u.qp, ah.Path, frame, n, length)
	}
	if len(e.taps.list) == 0 {
		dispatch()
	} else {
		e.taps.watch(true, frame[:n], dispatch)
	}
}

// describe sets the header fields that depend on the request. A privileged Q_Key in the request selects the queue
// pair's Q_Key (IBA 10.2.5).
func (u *Datagrams) describe(d *departure) {
	qp, s, h := u.qp, &d.send, &d.datagram
	h.DestQP, h.SourceQP, h.PSN, h.PKey, h.ID = s.RemoteQPN, qp.Number, u.next, qp.PKey, u.engine.numbering.nextID()
	h.QKey = s.RemoteQKey
	if h.QKey&wire.QKeyPrivileged != 0 {
		h.QKey = qp.QKey
	}
	h.Solicited = s.Flags&ib.SendSolicited != 0
	h.HasImm, h.Imm = s.Opcode == ib.WRSendWithImm, s.Imm
}

// check checks the copy of a request, finds its memory, and returns its address handle and length, in bytes.
func (u *Datagrams) check(d *departure, data []byte) (ah *AH, length int, status ib.WCStatus) {
	qp, s := u.qp, &d.send
	ah = qp.Session.ah(s.AH)
	if !s.Opcode.On(wire.ServiceUD) || ah == nil || ah.PD != qp.PD {
		return nil, 0, ib.WCLocQPOpErr
	}
	if s.Flags&ib.SendInline != 0 {
		if s.InlineLen > qp.MaxInline || int(s.InlineLen) > len(data) {
			return nil, 0, ib.WCLocLenErr
		}
		d.pieces.Only(data[:s.InlineLen])
	} else {
		list, ok := ring.ListIn(data, s.SGECount)
		switch {
		case uint32(s.SGECount) > qp.MaxSendSGE || !ok:
			return nil, 0, ib.WCLocQPOpErr
		case !d.pieces.Find(&qp.Session.Table, list, qp.PD, false, 0, u.engine.tables.mtu):
			return nil, 0, ib.WCLocProtErr
		}
	}
	if length = d.pieces.Length; length > u.engine.tables.mtu {
		return nil, 0, ib.WCLocLenErr
	}
	return ah, length, ib.WCSuccess
}
