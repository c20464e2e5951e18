package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// departure is a request on its way out, and what it has in hand.
type departure struct {
	send     ring.Send
	pieces   [ring.MaxSGE][]byte // the request's memory
	datagram wire.Datagram
	frame    []byte // packets to this device are built here
	cqe      ring.CQE
	looped   arrival // of a packet to this device
}

// transmit sends what the doorbells tell of, kicks the link once, and reports whether
// anything moved. The round has one budget for all queue pairs; they take turns, also
// across rounds.
func (e *Engine) transmit() (moved bool) {
	e.budget = sendBudget
	resumed, rung := e.resume(&e.tx.looped, &e.looping), e.collect()
	moved = resumed || rung
	visits := e.budget // those that can do nothing cost as well
	for ; visits > 0 && e.budget > 0 && !e.looping.pending(); visits-- {
		qp := e.turns.next()
		if qp == nil {
			break
		}
		some, done := e.sendSome(qp, &e.tx)
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

// sendSome takes requests from one queue pair until its queue is empty or held
// by its state (done), its turn or the round's budget ends, or the link has no frame free.
func (e *Engine) sendSome(qp *QP, d *departure) (moved, done bool) {
	defer qp.Send.Publish()
	for range sendTurn {
		switch {
		case qp.State == ring.QPStateSQE || qp.State == ring.QPStateErr:
			some, done := e.flush(qp, d)
			return some || moved, done
		case qp.State != ring.QPStateRTS || qp.Send.Available() == 0:
			return moved, true
		case e.budget <= 0 || e.looping.pending() || !e.sendUD(qp, d):
			return moved, false
		}
		e.budget--
		moved = true
	}
	return true, false
}

// findMemory finds the memory of a request's SGEs, which follow it in its slot.
func (d *departure) findMemory(qp *QP, data []byte) (length int, status ring.WCStatus) {
	s := &d.send
	if uint32(s.SGECount) > qp.MaxSendSGE || int(s.SGECount)*ring.SGELen > len(data) {
		return 0, ring.WCLocQPOpErr
	}
	for i := range int(s.SGECount) {
		sge := ring.GetSGE(data[i*ring.SGELen:])
		piece := qp.Session.memory(sge, qp.PD, false)
		if piece == nil && sge.Length != 0 {
			return 0, ring.WCLocProtErr
		}
		d.pieces[i] = piece
		length += len(piece)
	}
	return length, ring.WCSuccess
}

// dispatch lets a packet go the way that its path goes now.
func (e *Engine) dispatch(d *departure, path *Path, frame []byte, n, length int) {
	switch {
	case path.state == PathLocal:
		e.loopBack(d, frame[:n], length)
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
func (e *Engine) loopBack(d *departure, frame []byte, length int) {
	if e.parseOwn(&d.looped, frame, length) {
		e.deliver(&d.looped)
	}
}

// loopBackGroup delivers a packet to those members of its group that are on this
// device; the wire gets it too, so that what is left for later rounds is a copy.
func (e *Engine) loopBackGroup(d *departure, frame []byte, length int, members []*QP, sender *QP) {
	if len(members) == 0 || !e.parseOwn(&d.looped, frame, length) {
		return
	}
	f := &e.looping
	if e.deliverGroup(&d.looped, f, frame, members, sender); f.pending() {
		f.frame = d.frame[:copy(d.frame, frame)]
	}
}

// parseOwn counts a packet that this device sends to itself, and parses it: that
// it is right in itself is known.
func (e *Engine) parseOwn(a *arrival, frame []byte, length int) bool {
	e.counters.Loopback++
	e.counters.Received++
	e.counters.ReceivedBytes += uint64(length)
	fault := wire.Parse(frame, &a.packet)
	if fault != wire.FaultNone {
		e.counters.Drops[faultDrop(fault)]++
	}
	return fault == wire.FaultNone
}
