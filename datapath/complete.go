package datapath

import (
	"math"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/timers"
)

// completions are what programs are told at the end of a round.
type completions struct {
	engine    *Engine
	cqe       ring.CQE         // in hand
	dirty     []*CQ            // to publish, in the order of their first completions
	published int              // of dirty: those before it have been taken out
	postponed timers.Heap[*CQ] // whose events are put off
	takenFrom []*SRQ           // to publish
	reached   []*SRQ           // with the event of their limit to be reported
	ended     []*QP            // with NoteLastWQE to be called
	clock     clock
}

// complete writes an entry to a CQ; it is published at the end of the round. If the CQ is full,
// which is an overrun, the CQ and its queue pairs fail, and complete returns false.
func (cs *completions) complete(cq *CQ, c *ring.CQE, solicited bool) bool {
	if cq.overrun {
		return false
	}
	if !cq.dirty {
		cq.dirty = true
		cs.dirty = append(cs.dirty, cq)
	}
	if cq.Queue.Stamped() {
		c.Timestamp, c.Wallclock = cs.clock.read()
	}
	if !cq.Queue.Put(c) {
		cs.overrun(cq)
		return false
	}
	if cq.tally != nil {
		cq.tally.completed(c.Status)
	}
	cq.solicited = cq.solicited || solicited
	return true
}

// overrun fails a CQ and all queue pairs that complete to it. The program is notified when the round's completions are
// published: see publish.
func (cs *completions) overrun(cq *CQ) {
	cq.overrun = true
	cq.solicited = true
	for qp := range cq.QPs {
		cs.engine.fail(qp, true)
	}
}

// publish makes the round's completions visible to the programs, and sends the events of armed CQs,
// once a CQ and round.
func (e *Engine) publish() {
	e.publishSRQs() // first: a program that polls a completion may post to the slot at once
	for cq := e.nextDirty(); cq != nil; cq = e.nextDirty() {
		e.hand = cq.Session
		solicited := cq.solicited
		cq.dirty, cq.solicited = false, false
		cq.Queue.Publish()
		if cq.overrun {
			cq.Queue.Fail() // behind the index: pairs with CQ.failure in verbs, and take_last in verbs/c/cq.c
			cq.NoteOverrun()
		}
		if cq.Queue.Armed() != 0 {
			e.notify(cq, solicited)
		} else {
			cq.reported = cq.Queue.Written()
		}
	}
	e.noteSRQs()
	e.accepting.takeTurns(&e.turns)
	if len(e.postponed) > 0 {
		e.reportPostponed()
	}
	e.hand = nil
	e.runner.SetAlarm(earliest(e.postponed), earlier(earliest(e.timers.heap), e.flights.Deadline()), e.now)
}

// nextDirty takes the next CQ out of those to publish, before it is looked at, as pop does.
func (cs *completions) nextDirty() (cq *CQ) {
	if cs.published == len(cs.dirty) {
		cs.dirty, cs.published = cs.dirty[:0], 0
		return nil
	}
	cq, cs.dirty[cs.published] = cs.dirty[cs.published], nil
	cs.published++
	return cq
}

// failSend completes a send request with an error.
func (cs *completions) failSend(qp *QP, id uint64, status ring.WCStatus) {
	cs.cqe.Set(id, status, ring.WCSend, qp.Number, qp.CompletionToken)
	if status == ring.WCLocLenErr {
		cs.cqe.VendorErr = uint32(cs.engine.mtu) // the longest payload allowed, for the error message
	}
	cs.complete(qp.SendCQ, &cs.cqe, true)
}

// completeRecv completes a receive request with an error. An error counts as solicited.
func (cs *completions) completeRecv(qp *QP, id uint64, status ring.WCStatus) {
	cs.cqe.Set(id, status, ring.WCRecv, qp.Number, qp.CompletionToken)
	cs.complete(qp.RecvCQ, &cs.cqe, true)
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
	if shares := qp.SRQ != nil || qp.Domain != nil; !shares {
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

// clock is the card's free-running clock, CLOCK_MONOTONIC in nanoseconds, and the wall clock beside it.
// One reading of the time gives both, by a call that needs no system call.
type clock struct {
	start time.Time
	since uint64 // ns of CLOCK_MONOTONIC at start
}

// newClock finds what CLOCK_MONOTONIC is at a time of Go's. It asks for one between two readings of the
// other, several times, since anything may come between; the closest pair counts.
func newClock() (c clock) {
	closest := uint64(math.MaxUint64)
	for range 64 {
		before, now, after := monotonic(), time.Now(), monotonic()
		if apart := after - before; apart < closest {
			closest, c = apart, clock{now, before + apart/2}
		}
	}
	return c
}

func monotonic() uint64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail: the clock exists
	return uint64(now.Nano())
}

// read gives both clocks, in ns.
func (c *clock) read() (free, wall uint64) {
	now := time.Now()
	return c.since + uint64(now.Sub(c.start)), uint64(now.UnixNano())
}

// Clock is the card's free-running clock now, in ns.
func (cs *completions) Clock() uint64 {
	free, _ := cs.clock.read()
	return free
}
