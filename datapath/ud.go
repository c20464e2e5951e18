package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// The unreliable datagram service (UD).
//
//	receiveUD   checks in a fixed order → takeUD: memory, scatter, completion
//	sendUD      copy the request → checkUD: the copy → buildUD: gather, seal, dispatch → completion

// receiveUD checks a packet in this order: state, service, P_Key, Q_Key, length, and whether there
// is a receive request, its own or its SRQ's, that has room. A packet that fails a check changes nothing.
func (e *Engine) receiveUD(qp *QP, a *arrival) Drop {
	p := &a.packet
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
	case length > e.mtu:
		return DropTooLong
	case !qp.Recv.Peek(&a.recv) && !qp.SRQ.peekNewer(&a.recv):
		return DropNoReceive
	case recvRoom(&a.recv) < uint64(wire.GRHLen+length):
		return DropNoRoom
	}
	return e.takeUD(qp, a)
}

// recvRoom is the length of a receive request's memory, in bytes.
func recvRoom(r *ring.Recv) (room uint64) {
	for _, s := range r.SGEs[:r.SGECount] {
		room += uint64(s.Length)
	}
	return room
}

// takeUD consumes the receive request in hand and writes the packet to its memory.
func (e *Engine) takeUD(qp *QP, a *arrival) Drop {
	ok := qp.Session.resolve(a.pieces[:a.recv.SGECount], a.recv.SGEs[:a.recv.SGECount], qp.RecvPD, true)
	qp.Recv.Advance()
	if qp.SRQ != nil {
		e.took(qp.SRQ)
	}
	if !ok {
		e.completeRecv(qp, a, ring.WCLocProtErr)
		e.fail(qp, false)
		return DropProtection
	}
	scatter(a.pieces[:a.recv.SGECount], &a.packet)
	if !e.completeUD(qp, a) {
		return DropCQFull
	}
	return DropNone
}

// scatter writes the GRH and the payload into the request's memory.
func scatter(pieces [][]byte, p *wire.Packet) {
	payload := p.Payload()
	if first := pieces[0]; len(first) >= wire.GRHLen+len(payload) {
		p.PutGRH((*[wire.GRHLen]byte)(first))
		copy(first[wire.GRHLen:], payload)
		return
	}
	var grh [wire.GRHLen]byte
	p.PutGRH(&grh)
	scatterAt(pieces, 0, grh[:])
	scatterAt(pieces, wire.GRHLen, payload)
}

// completeUD writes the completion of a packet that is in the program's memory.
func (e *Engine) completeUD(qp *QP, a *arrival) bool {
	c, p := &a.cqe, &a.packet
	c.Set(a.recv.ID, ring.WCSuccess, ring.WCRecv, qp.Number, qp.CompletionToken)
	c.Flags, c.ByteLen, c.SourceQP = ring.WCGRH|ring.WCWithSMAC|ring.WCWithNetworkHdrType, uint32(wire.GRHLen+len(p.Payload())), p.DETH().SrcQP()
	if p.Has(wire.HeaderImm) {
		c.Flags |= ring.WCWithImm
		c.Imm = p.Imm()
	}
	c.SMAC, c.NetworkHeader, c.Port = p.SourceMAC(), ring.NetworkIPv4, 1
	if p.IsIPv6() {
		c.NetworkHeader = ring.NetworkIPv6
	}
	c.SL = p.Priority()
	if id, tagged := p.VLAN(); tagged {
		c.Flags |= ring.WCWithVLAN
		c.VLAN = id
	}
	return e.complete(qp.RecvCQ, c, p.BTH().Solicited())
}

// sendUD copies the next request out, checks the copy and sends it. A local error stops the send
// queue (SQE). It returns false, and has changed nothing, if the link has no free frame.
func (e *Engine) sendUD(qp *QP, d *departure) bool {
	data := qp.Send.Get(&d.send)
	ah, length, status := e.checkUD(qp, d, data)
	if status == ring.WCSuccess && !e.buildUD(qp, d, ah, length) {
		return false
	}
	qp.Send.Advance(e.completeSend(qp, d, status))
	if status != ring.WCSuccess && qp.State != ring.QPStateErr { // that completion may have been an overrun
		e.setState(qp, ring.QPStateSQE)
		qp.NoteState(ring.QPStateSQE, false)
	}
	return true
}

// buildUD makes a packet of a request and sends it. It returns false if the link has no free frame.
func (e *Engine) buildUD(qp *QP, d *departure, ah *AH, length int) bool {
	frame := d.frame
	if ah.Path.state == PathOpen && !e.down {
		if frame = e.link.Reserve(); frame == nil {
			return false
		}
	}
	payload := frame[ah.Template.PayloadOffset(d.send.Opcode == ring.WRSendWithImm):]
	for _, piece := range d.pieces[:d.send.SGECount] {
		payload = payload[copy(payload, piece):]
	}
	e.sealUD(qp, d, ah, frame, length)
	return true
}

// checkUD checks the copy of a request, finds its memory, and returns its address handle and
// length, in bytes.
func (e *Engine) checkUD(qp *QP, d *departure, data []byte) (ah *AH, length int, status ring.WCStatus) {
	s := &d.send
	ah = qp.Session.ah(s.AH)
	if !s.Opcode.On(wire.ServiceUD) || ah == nil || ah.PD != qp.PD {
		return nil, 0, ring.WCLocQPOpErr
	}
	if s.Flags&ring.SendInline != 0 {
		if s.InlineLen > qp.MaxInline || int(s.InlineLen) > len(data) {
			return nil, 0, ring.WCLocLenErr
		}
		d.pieces[0], s.SGECount = data[:s.InlineLen], 1
		length = int(s.InlineLen)
	} else if length, status = d.findMemory(qp, data); status != ring.WCSuccess {
		return nil, 0, status
	}
	if length > e.mtu {
		return nil, 0, ring.WCLocLenErr
	}
	return ah, length, ring.WCSuccess
}

// sealUD writes headers and ICRC around the payload, and sends the packet: to the group members on
// this card, and along its path.
func (e *Engine) sealUD(qp *QP, d *departure, ah *AH, frame []byte, length int) {
	s, h := &d.send, &d.datagram
	h.DestQP, h.SourceQP, h.PSN, h.PKey, h.ID = s.RemoteQPN, qp.Number, qp.PSN, qp.PKey, e.id
	h.QKey = s.RemoteQKey
	if h.QKey&wire.QKeyPrivileged != 0 {
		h.QKey = qp.QKey
	}
	h.Solicited = s.Flags&ring.SendSolicited != 0
	h.HasImm, h.Imm = s.Opcode == ring.WRSendWithImm, s.Imm
	qp.PSN = (qp.PSN + 1) & wire.PSNMask
	e.id++
	n := ah.Template.Seal(frame, h, length)
	copy(frame, ah.Path.ethernet[:])
	e.counters.Sent++
	e.counters.SentBytes += uint64(length)
	if len(e.taps) == 0 {
		e.depart(qp, d, ah, frame, n, length)
	} else {
		e.tap(true, frame[:n], func() { e.depart(qp, d, ah, frame, n, length) })
	}
}

// depart sends a packet of n bytes: to the group members on this card, and along its path.
func (e *Engine) depart(qp *QP, d *departure, ah *AH, frame []byte, n, length int) {
	if ah.Group {
		e.loopBackGroup(d, frame[:n], length, e.groups[ah.Dest], qp)
	}
	e.dispatch(qp, d, ah.Path, frame, n, length)
}
