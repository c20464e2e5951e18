package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// transmit sends what the doorbells tell of, kicks the link once, and reports whether
// anything moved. The round has one budget for all queue pairs; they take turns, also
// across rounds.
func (e *Engine) transmit() (moved bool) {
	e.budget = sendBudget
	resumed, rung := e.resume(&e.looping), e.doorbell.Collect(e.budget, e.collect)
	moved = resumed || rung > 0
	visits := e.budget // those that can do nothing cost as well
	for ; visits > 0 && e.budget > 0 && !e.looping.pending(); visits-- {
		qp := e.turns.next()
		if qp == nil {
			break
		}
		some, done := e.sendSome(qp)
		if moved = moved || some || done; !done {
			e.turns.add(qp)
		}
	}
	if moved || !e.turns.empty() || e.blocked {
		moved = e.flushLink() || moved
	}
	return moved
}

// flushLink kicks the link, and reports whether that unblocked it.
func (e *Engine) flushLink() (unblocked bool) {
	was := e.blocked
	e.blocked = !e.link.Flush() && !e.down // it takes nothing then: SetLink tells when
	e.counters.Drops[DropLinkDown] += uint64(e.link.TakenBack())
	if refused := e.link.Refused(); refused > 0 {
		e.counters.Drops[DropInterface] += uint64(refused)
		e.noteRefused()
	}
	return was && !e.blocked
}

// noteWork gives the queue pair of a doorbell bit its turn; the program may have set
// any bit.
func (e *Engine) noteWork(index uint32) {
	if int(index) < len(e.byDoorbell) && e.byDoorbell[index] != nil {
		e.turns.add(e.byDoorbell[index])
	}
}

// sendSome takes requests from one queue pair until its queue is empty or held
// by its state (done), its turn or the round's budget ends, or the link has no frame free.
func (e *Engine) sendSome(qp *QP) (moved, done bool) {
	defer qp.Send.Publish()
	for range sendTurn {
		switch {
		case qp.State == ring.QPStateSQE || qp.State == ring.QPStateErr:
			some, done := e.flush(qp)
			return some || moved, done
		case qp.State != ring.QPStateRTS || qp.Send.Available() == 0:
			return moved, true
		case e.budget <= 0 || e.looping.pending() || !e.sendOne(qp):
			return moved, false
		}
		e.budget--
		moved = true
	}
	return true, false
}

// sendOne takes the next request: a copy is made, the copy is checked, then
// obeyed. False when there was no frame for it; nothing has happened then.
func (e *Engine) sendOne(qp *QP) bool {
	s := &e.send
	data := qp.Send.Get(s)
	ah, length, status := e.checkSend(qp, s, data)
	if status != ring.WCSuccess {
		qp.Send.Advance(e.completeSend(qp, status))
		e.setState(qp, ring.QPStateSQE)
		qp.NoteState(ring.QPStateSQE, false)
		return true
	}
	frame := e.scratch
	if ah.Path.state == PathOpen && !e.down {
		if frame = e.link.Reserve(); frame == nil {
			return false
		}
	}
	e.gather(frame[ah.Template.PayloadOffset(s.Opcode == ring.WRSendWithImm):], s)
	e.seal(qp, ah, frame, length)
	qp.Send.Advance(e.completeSend(qp, ring.WCSuccess))
	return true
}

// checkSend checks the copy of a request, resolves its memory into e.pieces and
// gives its address handle and length. A local error stops the send queue (SQE).
func (e *Engine) checkSend(qp *QP, s *ring.Send, data []byte) (ah *AH, length int, status ring.WCStatus) {
	ah = e.ah(s.AH)
	if s.Opcode != ring.WRSend && s.Opcode != ring.WRSendWithImm || ah == nil || ah.PD != qp.PD {
		return nil, 0, ring.WCLocQPOpErr
	}
	if s.Flags&ring.SendInline != 0 {
		if s.InlineLen > qp.MaxInline || int(s.InlineLen) > len(data) {
			return nil, 0, ring.WCLocLenErr
		}
		e.pieces[0], s.SGECount = data[:s.InlineLen], 1
		length = int(s.InlineLen)
	} else if length, status = e.gatherList(qp, s, data); status != ring.WCSuccess {
		return nil, 0, status
	}
	if length > e.mtu {
		return nil, 0, ring.WCLocLenErr
	}
	return ah, length, ring.WCSuccess
}

// gatherList resolves a request's SGEs.
func (e *Engine) gatherList(qp *QP, s *ring.Send, data []byte) (length int, status ring.WCStatus) {
	if uint32(s.SGECount) > qp.MaxSendSGE || int(s.SGECount)*ring.SGELen > len(data) {
		return 0, ring.WCLocQPOpErr
	}
	for i := range int(s.SGECount) {
		sge := ring.GetSGE(data[i*ring.SGELen:])
		piece := e.memory(sge, qp.PD, false)
		if piece == nil && sge.Length != 0 {
			return 0, ring.WCLocProtErr
		}
		e.pieces[i] = piece
		length += len(piece)
	}
	return length, ring.WCSuccess
}

// gather copies a request's data to where the packet's payload goes.
func (e *Engine) gather(payload []byte, s *ring.Send) {
	for _, piece := range e.pieces[:s.SGECount] {
		payload = payload[copy(payload, piece):]
	}
}

// seal makes a packet of a frame whose payload is in place, and lets it go.
func (e *Engine) seal(qp *QP, ah *AH, frame []byte, length int) {
	s, d := &e.send, &e.datagram
	d.DestQP, d.SourceQP, d.PSN, d.PKey, d.ID = s.RemoteQPN, qp.Number, qp.PSN, qp.PKey, e.id
	d.QKey = s.RemoteQKey
	if d.QKey&wire.QKeyPrivileged != 0 {
		d.QKey = qp.QKey
	}
	d.Solicited = s.Flags&ring.SendSolicited != 0
	d.HasImm, d.Imm = s.Opcode == ring.WRSendWithImm, s.Imm
	qp.PSN = (qp.PSN + 1) & wire.PSNMask
	e.id++
	n := ah.Template.Seal(frame, d, length)
	copy(frame, ah.Path.ethernet[:])
	e.counters.Sent++
	e.counters.SentBytes += uint64(length)
	if ah.Group {
		e.loopBackGroup(frame[:n], length, e.groups[ah.Dest], qp)
	}
	e.dispatch(ah.Path, frame, n, length)
}

// dispatch lets a packet go the way that its path goes now.
func (e *Engine) dispatch(path *Path, frame []byte, n, length int) {
	switch {
	case path.state == PathLocal:
		e.loopBack(frame[:n], length)
	case e.down: // before what follows from it
		e.counters.Drops[DropLinkDown]++
	case path.state == PathUnreachable:
		e.counters.Drops[DropUnreachable]++
	case path.mtu != 0 && length > path.mtu:
		e.counters.Drops[DropPathMTU]++
	case path.state == PathResolving:
		e.hold(path, frame[:n])
	default:
		e.link.Commit(n)
	}
}

// loopBack delivers a packet to this device by the receiver's ladder: XDP never
// sees what the host itself sends.
func (e *Engine) loopBack(frame []byte, length int) {
	if e.parseOwn(frame, length) {
		e.deliver(&e.packet)
	}
}

// loopBackGroup delivers a packet to those members of its group that are on this
// device; the wire gets it too, so that what is left for later rounds is a copy.
func (e *Engine) loopBackGroup(frame []byte, length int, members []*QP, sender *QP) {
	if len(members) == 0 || !e.parseOwn(frame, length) {
		return
	}
	f := &e.looping
	if e.deliverGroup(f, frame, members, sender); f.pending() {
		f.frame = e.scratch[:copy(e.scratch, frame)]
	}
}

// parseOwn counts a packet that this device sends to itself, and parses it: that
// it is right in itself is known.
func (e *Engine) parseOwn(frame []byte, length int) bool {
	e.counters.Loopback++
	e.counters.Received++
	e.counters.ReceivedBytes += uint64(length)
	fault := wire.Parse(frame, &e.packet)
	if fault != wire.FaultNone {
		e.counters.Drops[faultDrop(fault)]++
	}
	return fault == wire.FaultNone
}
