package datapath

import (
	"encoding/binary"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// What the requester does with the peer's answers (IBA 9.7.3 to 9.7.5): acknowledgements, which count for
// all requests before theirs, and the responses to READs and atomics, which come in order.

// receiveAnswer takes an ACK, a NAK, or a response to a READ or an atomic.
func (e *Engine) receiveAnswer(qp *QP, a *arrival) Drop {
	c, psn := qp.Connection, a.packet.BTH().PSN()
	switch {
	case qp.State != ring.QPStateRTS && qp.State != ring.QPStateSQD:
		return DropQPState
	case ahead(psn, c.oldest) < 0 || ahead(psn, c.newest) >= 0:
		return DropStrayAnswer
	}
	defer qp.Send.Publish()
	if a.packet.BTH().Opcode().Means().Is(wire.MeansAcknowledge) {
		return e.receiveACK(qp, a, psn, a.packet.AETH().Syndrome())
	}
	return e.receiveResponse(qp, a, psn)
}

func (e *Engine) receiveACK(qp *QP, a *arrival, psn wire.PSN, s wire.Syndrome) Drop {
	c := qp.Connection
	switch s.Kind() {
	case wire.SyndromeACK:
		e.acknowledge(qp, a, plus(psn, 1))
		return DropNone
	case wire.SyndromeRNR:
		e.acknowledge(qp, a, psn)
		e.counters.RNRNAKs++
		return e.waitReady(qp, a, s)
	case wire.SyndromeNAK:
		e.acknowledge(qp, a, psn)
		if s == wire.NAKSequence {
			e.counters.SequenceNAKs++
			e.lost(qp, a, psn)
			return DropNone
		}
	}
	status, known := refusals[s]
	if !known || c.works.count == 0 {
		return DropStrayAnswer
	}
	e.failRequest(qp, &a.cqe, status)
	return DropNone
}

// refusals are the completion statuses of NAKs (IBA table 62).
var refusals = map[wire.Syndrome]ring.WCStatus{
	wire.NAKInvalidRequest: ring.WCRemInvReqErr, wire.NAKRemoteAccess: ring.WCRemAccessErr, wire.NAKRemoteOperational: ring.WCRemOpErr,
}

// acknowledge notes that the peer has all packets before a PSN, and completes requests. A READ or an atomic
// before it whose response is not here stops that: the response was lost.
func (e *Engine) acknowledge(qp *QP, a *arrival, before wire.PSN) {
	c := qp.Connection
	for c.works.count > 0 {
		w := c.works.at(0)
		if w.status != ring.WCSuccess || ahead(before, w.missing()) <= 0 {
			break
		}
		if w.wantsAnswer() {
			e.advance(qp, w.missing())
			e.lost(qp, a, w.missing())
			return
		}
		if ahead(before, w.end()) < 0 {
			break
		}
		e.advance(qp, w.end())
		e.finishRequest(qp, &a.cqe, ring.WCSuccess)
	}
	e.advance(qp, before)
}

// advance moves the oldest PSN on.
func (e *Engine) advance(qp *QP, to wire.PSN) {
	c := qp.Connection
	packets := ahead(to, c.oldest)
	if packets <= 0 {
		return
	}
	c.oldest, c.again = to, false
	if ahead(c.afterRead, to) < 0 {
		c.afterRead = to
	}
	if ahead(qp.PSN, to) < 0 { // what was about to be sent again has arrived after all
		qp.PSN = to
		c.current = c.works.find(to)
	}
	c.refreshRetries()
	c.patient, c.silent = false, false
	if c.arrived += uint32(packets); c.arrived >= c.window {
		c.arrived, c.window = 0, min(c.window+c.window/8+1, maxWindow)
	}
	e.startTimer(qp)
	e.turns.add(qp)
}

// lost goes back to a packet that the peer has not got, or whose response is not here. Of several signs of
// one loss the first counts.
func (e *Engine) lost(qp *QP, a *arrival, psn wire.PSN) {
	c := qp.Connection
	switch {
	case c.again || c.works.count == 0:
	case c.retries == 0:
		e.failRequest(qp, &a.cqe, ring.WCRetryExcErr)
	default:
		c.retries--
		e.goBack(qp, psn)
		c.again = true
	}
}

// goBack has the packets from a PSN on sent again.
func (e *Engine) goBack(qp *QP, psn wire.PSN) {
	c := qp.Connection
	qp.PSN = psn
	c.current = c.works.find(psn)
	c.afterRead, c.unasked = c.oldest, 0
	c.window = max(c.window/2, minWindow)
	e.startTimer(qp)
	e.turns.add(qp)
}

// waitReady waits as long as the peer says before it goes back to the request that the peer had no receive
// for.
func (e *Engine) waitReady(qp *QP, a *arrival, s wire.Syndrome) Drop {
	c := qp.Connection
	switch {
	case c.works.count == 0:
		return DropStrayAnswer
	case c.patient: // of several of one try the first counts
		return DropNone
	case c.RNRRetry != foreverRNR && c.rnrRetries == 0:
		e.failRequest(qp, &a.cqe, ring.WCRNRRetryExcErr)
		return DropNone
	}
	c.rnrRetries -= min(c.rnrRetries, 1)
	e.goBack(qp, c.oldest)
	c.patient = true
	e.timers.set(qp, e.now().Add(s.RNRTime()))
	return DropNone
}

// foreverRNR is the RNRRetry that never ends.
const foreverRNR = 7

// startTimer begins the time within which the peer has to answer; it ends the timer if nothing is
// outstanding.
func (e *Engine) startTimer(qp *QP) {
	timeout := wire.AckTimeout(qp.Timeout)
	if timeout == 0 || qp.oldest == qp.newest || qp.works.count == 0 {
		e.timers.clear(qp)
		return
	}
	e.timers.set(qp, e.now().Add(timeout))
}

// timeOut is called when a queue pair's time has come: the peer is ready again, or has not answered.
func (e *Engine) timeOut(qp *QP) {
	c := qp.Connection
	switch {
	case c.patient:
		c.patient = false
		e.startTimer(qp)
		e.turns.add(qp)
	case c.works.count == 0 || c.works.at(0).packets == 0:
	default:
		e.counters.Timeouts++
		c.again, c.silent = false, true
		e.lost(qp, &e.rx, c.oldest)
	}
	qp.Send.Publish()
}

// nextAnswer is the oldest READ or atomic that is not answered, after all that its answer acknowledges;
// nil if the PSN is not one of its.
func (e *Engine) nextAnswer(qp *QP, a *arrival, psn wire.PSN) *work {
	for i := range qp.works.count {
		if w := qp.works.at(i); w.wantsAnswer() {
			if ahead(psn, w.first) < 0 {
				return nil
			}
			if e.acknowledge(qp, a, w.first); qp.works.count == 0 { // a completion was an overrun
				return nil
			}
			return qp.works.at(0)
		}
	}
	return nil
}

// receiveResponse takes a response to a READ or an atomic.
func (e *Engine) receiveResponse(qp *QP, a *arrival, psn wire.PSN) Drop {
	w := e.nextAnswer(qp, a, psn)
	if w == nil {
		return DropStrayAnswer
	}
	if psn != w.missing() {
		e.lost(qp, a, w.missing())
		return DropOutOfSequence
	}
	mtu := uint32(qp.MTU.Bytes())
	if !w.isAnswer(&a.packet, mtu) {
		e.failRequest(qp, &a.cqe, ring.WCBadRespErr)
		return DropInvalidRequest
	}
	data := a.packet.Payload()
	var original [atomicSize]byte
	if w.atomic() {
		binary.NativeEndian.PutUint64(original[:], a.packet.Original())
		data = original[:]
	}
	if status := qp.spread(w, int(w.answered*mtu), data); status != ring.WCSuccess {
		e.failRequest(qp, &a.cqe, status)
		return DropProtection
	}
	if w.answered++; w.answered == w.packets {
		qp.reads--
		e.finishRequest(qp, &a.cqe, ring.WCSuccess)
	}
	e.advance(qp, plus(psn, 1))
	return DropNone
}

// atomicSize is the size of what atomics work on, in bytes.
const atomicSize = 8

// isAnswer reports whether a packet can be the part of the response that is missing first.
func (w *work) isAnswer(p *wire.Packet, mtu uint32) bool {
	means, length := p.BTH().Opcode().Means(), uint32(len(p.Payload()))
	if answersAtomic := means.Is(wire.MeansAtomicAcknowledge); w.atomic() || answersAtomic {
		return w.atomic() && answersAtomic
	}
	return means.Is(wire.MeansEnd) == (w.answered+1 == w.packets) && length == min(w.length-w.answered*mtu, mtu)
}

// now is the time of this round.
func (e *Engine) now() time.Time {
	if e.time.IsZero() {
		e.time = time.Now()
	}
	return e.time
}
