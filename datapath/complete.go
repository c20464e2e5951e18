package datapath

import "github.com/roced/roced/datapath/ring"

// complete puts an entry into a CQ, to be published at the end of the burst. A
// full CQ is an overrun: it fails, and its queue pairs with it. False then.
func (e *Engine) complete(cq *CQ, c *ring.CQE, solicited bool) bool {
	if cq.overrun {
		return false
	}
	if !cq.dirty {
		cq.dirty = true
		e.dirty = append(e.dirty, cq)
	}
	if !cq.Queue.Put(c) {
		e.overrun(cq)
		return false
	}
	cq.solicited = cq.solicited || solicited
	return true
}

// overrun fails a CQ and all queue pairs that complete to it.
func (e *Engine) overrun(cq *CQ) {
	cq.overrun = true
	cq.solicited = true
	cq.Queue.Fail()
	cq.NoteOverrun()
	for qp := range cq.QPs {
		e.fail(qp, true)
	}
}

// publish shows the burst's completions to the programs, and wakes those that
// asked for it, once a CQ and burst.
func (e *Engine) publish() {
	for len(e.dirty) > 0 {
		cq := e.dirty[len(e.dirty)-1]
		e.dirty = e.dirty[:len(e.dirty)-1]
		cq.Queue.Publish()
		if cq.Queue.TakeArmed(cq.solicited) {
			cq.Wake()
		}
		cq.dirty, cq.solicited = false, false
	}
}

// completeSend tells of the request in hand, if it wants to be told of.
func (e *Engine) completeSend(qp *QP, d *departure, status ring.WCStatus) (signaled bool) {
	if status == ring.WCSuccess && !qp.SigAll && d.send.Flags&ring.SendSignaled == 0 {
		return false
	}
	d.cqe.Set(d.send.ID, status, ring.WCSend, qp.Number, qp.CompletionToken)
	if status == ring.WCLocLenErr {
		d.cqe.VendorErr = uint32(e.mtu) // what would have been allowed
	}
	e.complete(qp.SendCQ, &d.cqe, status != ring.WCSuccess)
	return true
}

// completeRecv tells of the receive request in hand that took no packet: an error,
// so it counts as solicited.
func (e *Engine) completeRecv(qp *QP, a *arrival, status ring.WCStatus) {
	a.cqe.Set(a.recv.ID, status, ring.WCRecv, qp.Number, qp.CompletionToken)
	e.complete(qp.RecvCQ, &a.cqe, true)
}

// fail moves a queue pair to ERR by the engine's own decision; see NoteState. What
// is outstanding is flushed in its turn (see transmit), in order.
func (e *Engine) fail(qp *QP, fatal bool) {
	if qp.State == ring.QPStateErr {
		return
	}
	e.setState(qp, ring.QPStateErr)
	qp.NoteState(ring.QPStateErr, fatal)
}

// SetState moves a queue pair to a state that the control plane chose. RESET
// empties its queues without completions; ERR flushes them, at once as far as the budget
// of a change allows, the rest in turn.
func (e *Engine) SetState(qp *QP, state ring.QPState) {
	e.setState(qp, state)
	switch state {
	case ring.QPStateReset:
		qp.Send.Skip()
		qp.Recv.Skip()
		e.turns.remove(qp)
	case ring.QPStateErr:
		if _, done := e.flush(qp, &e.tx); done {
			e.turns.remove(qp)
		}
	}
}

func (e *Engine) setState(qp *QP, state ring.QPState) {
	qp.State = state
	qp.Recv.SetFlush(state == ring.QPStateErr)
	if state != ring.QPStateReset {
		e.turns.add(qp) // requests may be in the queue that the new state lets go
	}
}

// flush completes what a queue pair has outstanding with WR_FLUSH_ERR, in order:
// sends in SQE and ERR, receives in ERR only. It is done unless the budget ends.
func (e *Engine) flush(qp *QP, d *departure) (moved, done bool) {
	defer qp.Send.Publish()
	a := &d.looped // in use by nobody now
	for ; e.budget > 0 && qp.Send.Available() > 0; e.budget-- {
		qp.Send.Get(&d.send)
		qp.Send.Advance(e.completeSend(qp, d, ring.WCWRFlushErr))
		moved = true
	}
	if qp.State != ring.QPStateErr {
		return moved, e.budget > 0
	}
	for ; e.budget > 0 && qp.Recv.Peek(&a.recv); e.budget-- {
		qp.Recv.Advance()
		e.completeRecv(qp, a, ring.WCWRFlushErr)
		moved = true
	}
	return moved, e.budget > 0
}
