package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// requester is the half of a connection that sends requests (IBA 9.7.2 to 9.7.5).
//
// Packets are sent in the order of their PSNs. oldest is the first that is not acknowledged, QP.PSN the next
// to send, newest the one after the last that was ever sent: what is sent below it is sent again.
//
//	      oldest          QP.PSN            newest
//	───────┴─ sent ─────────┴─ sent before ───┴──────►
//
// The window bounds how many are on their way. A loss halves it, and it grows by an eighth with each
// window that arrives.
type requester struct {
	works          works
	current        uint32 // place among works of the request that is sent next; the count: one to be taken
	oldest, newest wire.PSN
	afterRead      wire.PSN // where the last READ that was sent ends, or oldest
	reads          int      // READs and atomics that are not answered
	window         uint32   // packets
	arrived        uint32   // packets acknowledged since the window grew
	unasked        uint32   // packets since the last that asked for an acknowledgement
	retries        uint8    // left, see Connection.RetryCnt
	rnrRetries     uint8
	patient        bool // waits for the time of an RNR NAK
	silent         bool // the peer has not answered in time, and not since
	again          bool // goes back to oldest; what was sent before does not count until it has moved
	draining       bool // in SQD, and that it is drained has not been said
	timer          timer
}

const (
	maxWindow = 128 // packets, as Soft-RoCE's
	minWindow = 4
	// maxFlight is how many packets a card's connections have on their way: half of what a card's receive ring
	// holds.
	maxFlight = 1024
	// askGap is after how many packets of a long message an acknowledgement is asked for.
	askGap = 32

	// MaxMessage is the length of the longest message, in bytes. The PSNs of two of them are less than
	// half of all at any MTU.
	MaxMessage = 1 << 30
)

// begin prepares a requester that sends this PSN first.
func (c *Connection) begin(psn wire.PSN) {
	c.requester = requester{oldest: psn, newest: psn, afterRead: psn, window: maxWindow}
	c.refreshRetries()
}

func (c *Connection) refreshRetries() { c.retries, c.rnrRetries = c.RetryCnt, c.RNRRetry }

// windowFull says that as many packets are on their way as may be. The PSNs of READs do not count: their
// packets are the peer's. It is not full while no answer to any of them is asked for.
func (e *Engine) windowFull(qp *QP) bool {
	flying := ahead(qp.PSN, qp.afterRead)
	return flying >= int(e.windowOf(qp)) && flying > int(qp.unasked)
}

// windowOf is how many packets a queue pair may have on their way. What a receiver has room for is shared by
// the sessions that have packets on their way, and a session's share by its queue pairs. One whose peer is
// not ready, or has not answered in time, has none.
func (e *Engine) windowOf(qp *QP) uint32 {
	sharing := uint32(max(1, e.timers.flights*qp.Session.flights))
	return min(qp.window, max(minWindow, maxFlight/sharing))
}

// sendRequest sends the next packet of a queue pair's requests.
func (e *Engine) sendRequest(qp *QP, d *departure) sending {
	c := qp.Connection
	if c.patient || c.reliable() && e.windowFull(qp) {
		return sentNone
	}
	if c.current == c.works.count && !e.takeRequest(qp, d) {
		return sentNone
	}
	w := c.works.at(c.current)
	if w.status != ring.WCSuccess {
		return e.failFirst(qp, d)
	}
	if w.packets == 0 { // it is carried out here
		e.finishRequest(qp, &d.cqe, e.runLocal(qp, w))
		return sentOne
	}
	frame := e.frameTo(c, d)
	if frame == nil {
		return sentLater
	}
	return e.sendPart(qp, d, w, frame)
}

// takeRequest checks the next request that is posted, and adds it to those that are being sent. It returns
// false if there is none, or if it has to wait: for reads and atomics before it, or for all.
func (e *Engine) takeRequest(qp *QP, d *departure) bool {
	c := qp.Connection
	if qp.State != ring.QPStateRTS || c.failing() {
		e.drained(qp)
		return false
	}
	if qp.Send.Behind(c.works.count) == 0 {
		return false
	}
	var w work
	data := qp.Send.GetAt(c.works.count, &w.Send)
	if c.mustWait(&w) {
		return false
	}
	if qp.checkRequest(&w, data); !w.local() && w.status == ring.WCSuccess {
		w.packets, w.first = packetsOf(w.length, c.MTU), qp.PSN
		if ahead(qp.PSN, c.oldest)+int(w.packets) > int(wire.PSNMask)/2 {
			return false
		}
	}
	if w.wantsAnswer() {
		c.reads++
	}
	*c.works.add() = w
	return true
}

// failing says that the last request taken cannot be carried out: nothing is taken behind it.
func (c *Connection) failing() bool {
	return c.works.count > 0 && c.works.at(c.works.count-1).status != ring.WCSuccess
}

// mustWait says that a request may not be begun before others are completed: a local one waits for all
// others, a fenced one for READs and atomics (IBA 10.8.3.3), and of these there may be MaxRDAtomic.
func (c *Connection) mustWait(w *work) bool {
	return w.local() && c.works.count > 0 ||
		w.Flags&ring.SendFence != 0 && c.reads > 0 ||
		w.wantsAnswer() && c.reads >= max(1, int(c.MaxRDAtomic))
}

// checkRequest checks the copy of a request, and measures its memory.
func (qp *QP) checkRequest(w *work, data []byte) {
	length, status := 0, ring.WCSuccess
	switch {
	case !w.Opcode.On(qp.Service), w.wantsAnswer() && qp.MaxRDAtomic == 0:
		status = ring.WCLocQPOpErr
	case w.local():
	case w.atomic() && (w.SGECount != 1 || w.Flags&ring.SendInline != 0), w.Opcode == ring.WRRDMARead && w.Flags&ring.SendInline != 0:
		status = ring.WCLocQPOpErr
	case w.Flags&ring.SendInline != 0:
		if length = int(w.InlineLen); w.InlineLen > qp.MaxInline || length > len(data) {
			status = ring.WCLocLenErr
		}
	default:
		if w.atomic() {
			w.operands = ring.GetAtomic(data)
		}
		length, status = qp.measure(w, data)
	}
	if status == ring.WCSuccess && (length > MaxMessage || w.atomic() && length != atomicSize) {
		status = ring.WCLocLenErr
	}
	w.length, w.status = uint32(length), status
}

// failFirst completes a request that cannot be carried out, once all before it are completed.
func (e *Engine) failFirst(qp *QP, d *departure) sending {
	c := qp.Connection
	if c.works.count > 1 {
		return sentNone
	}
	e.failRequest(qp, &d.cqe, c.works.at(0).status)
	return sentOne
}

// sendPart sends the packet of a request that has the queue pair's PSN. frame is free for it.
func (e *Engine) sendPart(qp *QP, d *departure, w *work, frame []byte) sending {
	c, h := qp.Connection, &d.transport
	place := uint32(qp.PSN-w.first) & uint32(wire.PSNMask)
	*h = wire.Transport{PSN: qp.PSN, Opcode: c.Service.Of(w.operation(place))}
	length := w.describe(c, h, place)
	if status := qp.gather(w, frame[c.Template.PayloadOffsetOf(h.Opcode):][:length], int(place)*c.MTU.Bytes()); status != ring.WCSuccess {
		w.status = status // the memory was taken away, or the request changed, since it was checked
		c.cut(c.current + 1)
		return e.failFirst(qp, d)
	}
	e.countSent(qp, w, place, h)
	e.sealConnected(qp, d, frame, length)
	if !c.reliable() && c.works.count > 0 && c.current == c.works.count { // none: its own packet overran a CQ
		e.finishRequest(qp, &d.cqe, ring.WCSuccess)
	}
	return sentOne
}

// countSent moves the requester on past the packet in hand.
func (e *Engine) countSent(qp *QP, w *work, place uint32, h *wire.Transport) {
	c := qp.Connection
	packets := uint32(1)
	if w.Opcode == ring.WRRDMARead { // a request has the PSNs of its response
		packets = w.packets - place
	}
	last := place+packets == w.packets
	if ahead(c.newest, qp.PSN) > 0 {
		e.counters.Retransmits++
	}
	qp.PSN = plus(qp.PSN, packets)
	if ahead(qp.PSN, c.newest) > 0 {
		c.newest = qp.PSN
	}
	if last {
		c.current++
	}
	if w.Opcode == ring.WRRDMARead {
		c.afterRead = qp.PSN
	}
	if !c.reliable() {
		return
	}
	if c.unasked++; last && !w.wantsAnswer() || c.unasked >= askGap || c.unasked >= e.windowOf(qp)/2 {
		h.AckReq = !w.wantsAnswer()
		c.unasked = 0
	}
	if c.timer.due.IsZero() {
		e.startTimer(qp)
	}
}

// finishRequest completes the oldest request.
func (e *Engine) finishRequest(qp *QP, cqe *ring.CQE, status ring.WCStatus) {
	c := qp.Connection
	w := c.works.at(0)
	if status != ring.WCSuccess {
		e.failRequest(qp, cqe, status)
		return
	}
	cqe.Set(w.ID, ring.WCSuccess, w.Opcode.Completes(), qp.Number, qp.CompletionToken)
	cqe.ByteLen = w.length
	signaled := qp.SigAll || w.Flags&ring.SendSignaled != 0
	qp.Send.Advance(signaled)
	c.works.drop()
	c.current -= min(c.current, 1)
	if signaled { // last: an overrun ends the queue pair, and all that is left of its requests
		e.complete(qp.SendCQ, cqe, false)
	}
}

// failRequest completes the oldest request with an error, and moves the queue pair to ERR: what is behind
// it is flushed.
func (e *Engine) failRequest(qp *QP, cqe *ring.CQE, status ring.WCStatus) {
	w := qp.works.at(0)
	cqe.Set(w.ID, status, w.Opcode.Completes(), qp.Number, qp.CompletionToken)
	e.complete(qp.SendCQ, cqe, true)
	qp.Send.Advance(true)
	if qp.reliable() {
		e.fail(qp, false)
	} else if qp.State != ring.QPStateErr { // that completion may have been an overrun
		e.setState(qp, ring.QPStateSQE)
		qp.NoteState(ring.QPStateSQE, false)
	}
}

// cut forgets the requests from a place on.
func (c *Connection) cut(from uint32) {
	for ; c.works.count > from; c.works.count-- {
		if c.works.at(c.works.count - 1).wantsAnswer() {
			c.reads--
		}
	}
	c.current = min(c.current, from)
}

// drained says that a queue pair in SQD has finished what it had begun.
func (e *Engine) drained(qp *QP) {
	if qp.State == ring.QPStateSQD && qp.draining && qp.works.count == 0 {
		qp.draining = false
		qp.NoteEvent(ring.EventSQDrained)
	}
}
