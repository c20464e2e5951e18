package datapath

import "github.com/roced/roced/datapath/ring"

// complete writes an entry to a CQ; it is published at the end of the round. If the CQ is full,
// which is an overrun, the CQ and its queue pairs fail, and complete returns false.
func (e *Engine) complete(cq *CQ, c *ring.CQE, solicited bool) bool {
	if cq.overrun {
		return false
	}
	if !cq.dirty {
		cq.dirty = true
		e.dirty = append(e.dirty, cq)
	}
	if cq.Queue.Stamped() {
		c.Timestamp, c.Wallclock = e.clock.read()
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

// publish makes the round's completions visible to the programs, and sends the events of armed CQs,
// once a CQ and round.
func (e *Engine) publish() {
	e.publishSRQs() // first: a program that polls a completion may post to the slot at once
	for len(e.dirty) > 0 {
		cq := pop(&e.dirty)
		e.hand = cq.Session
		solicited := cq.solicited
		cq.dirty, cq.solicited = false, false
		cq.Queue.Publish()
		if cq.Queue.Armed() != 0 {
			e.notify(cq, solicited)
		} else {
			cq.reported = cq.Queue.Written()
		}
	}
	e.noteSRQs()
	e.acceptLater()
	if len(e.postponed) > 0 {
		e.reportPostponed()
	}
	e.hand = nil
	e.runner.SetAlarm(earliest(e.postponed), earliest(e.timers.heap), e.now)
}

// failSend completes a send request with an error.
func (e *Engine) failSend(qp *QP, id uint64, status ring.WCStatus) {
	e.cqe.Set(id, status, ring.WCSend, qp.Number, qp.CompletionToken)
	if status == ring.WCLocLenErr {
		e.cqe.VendorErr = uint32(e.mtu) // the longest payload allowed, for the error message
	}
	e.complete(qp.SendCQ, &e.cqe, true)
}

// completeRecv completes a receive request with an error. An error counts as solicited.
func (e *Engine) completeRecv(qp *QP, id uint64, status ring.WCStatus) {
	e.cqe.Set(id, status, ring.WCRecv, qp.Number, qp.CompletionToken)
	e.complete(qp.RecvCQ, &e.cqe, true)
}

// fail moves a queue pair to ERR and reports that to the control plane; see QP.NoteState. Its
// outstanding requests are flushed in order when it has its turn (see sendSome). One in RESET stays
// there: it has none, and from RESET there is no way to ERR.
func (e *Engine) fail(qp *QP, fatal bool) {
	if qp.State == ring.QPStateErr || qp.State == ring.QPStateReset {
		return
	}
	e.setState(qp, ring.QPStateErr)
	qp.NoteState(ring.QPStateErr, fatal)
}

// stopSending moves a queue pair to SQE: a request of its could not be carried out.
func (e *Engine) stopSending(qp *QP) {
	e.setState(qp, ring.QPStateSQE)
	qp.NoteState(ring.QPStateSQE, false)
}

// SetState moves a queue pair to a state that the control plane chose. RESET empties its queues
// without completions. ERR flushes them: at once as far as changeBudget allows, the rest when the
// queue pair has its turn. It runs in Do.
func (e *Engine) SetState(qp *QP, state ring.QPState) {
	e.setState(qp, state)
	switch state {
	case ring.QPStateReset:
		qp.Send.Skip()
		if qp.SRQ == nil {
			qp.Recv.Skip()
		}
		e.turns.remove(qp)
	case ring.QPStateErr:
		if _, done := e.flush(qp); done {
			e.turns.remove(qp)
		}
	}
}

func (e *Engine) setState(qp *QP, state ring.QPState) {
	qp.service.enter(state)
	if qp.SRQ == nil {
		qp.Recv.SetFlush(state == ring.QPStateErr)
	} else if state == ring.QPStateErr && qp.State != state {
		e.ended = append(e.ended, qp)
	}
	qp.Send.SetFailed(state == ring.QPStateErr)
	qp.State = state
	if state != ring.QPStateReset {
		e.turns.add(qp) // the new state may allow requests that wait in the queue
	}
}

// flush completes the outstanding requests of a queue pair with WR_FLUSH_ERR, in order: sends in
// SQE and ERR, receives in ERR only. Those of an SRQ are left for its other queue pairs. It is not
// done if the budget ends first.
func (e *Engine) flush(qp *QP) (moved, done bool) {
	defer qp.Send.Publish()
	for ; e.budget > 0 && qp.Send.Available() > 0; e.budget-- {
		e.failSend(qp, qp.Send.ID(), ring.WCWRFlushErr)
		qp.Send.Advance(true)
		moved = true
	}
	if qp.State == ring.QPStateErr {
		qp.service.flush() // before the receives that were not taken
	}
	if qp.State != ring.QPStateErr || qp.SRQ != nil {
		return moved, e.budget > 0
	}
	var recv ring.Recv
	for ; e.budget > 0 && qp.Recv.Peek(&recv); e.budget-- {
		qp.Recv.Advance()
		e.completeRecv(qp, recv.ID, ring.WCWRFlushErr)
		moved = true
	}
	return moved, e.budget > 0
}
