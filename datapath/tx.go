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
