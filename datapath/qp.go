// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// QP is the engine's part of a queue pair. Recv is its own receive queue, or its SRQ's if SRQ is set. RecvPD is the PD
// of the memory that receive requests may write to: the SRQ's or its own.
type QP struct {
	// The fields that a received packet needs come first, to share cache lines: with ten thousand queue pairs, few are
	// in the processor's cache.
	Session *Session
	service Service
	Recv    *ring.RecvConsumer
	RecvCQ  *CQ    // nil for an XRC target, as is SendCQ
	tally   *Tally // nil if no counts are kept
	Number  wire.QPN
	QKey    wire.QKey
	RecvPD  region.PD
	PKey    wire.PKey
	State   ib.QPState
	SigAll  bool
	SRQ     *SRQ // nil if it has its own receive queue

	Send            *ring.SendConsumer
	SendCQ          *CQ
	PD              region.PD
	DoorbellIndex   uint32 // its bit in the session's doorbell
	CompletionToken uint32 // copied to each of its completions: CQE.Token
	MaxInline       uint32
	MaxSendSGE      uint32
	// NoSelfLoopback prevents the queue pair from receiving the packets that it sends to groups.
	NoSelfLoopback bool
	waiting        bool    // it is in the turns of its session
	before, behind *QP     // the previous and the next queue pair in these turns
	Domain         *Domain // of an XRC target, which has neither queues nor CQs of its own

	// NoteState is called when the engine itself changes the state (to SQE or ERR). fatal is true if no completion
	// reports the change, because the CQ was overrun. It runs under the lease.
	NoteState func(s ib.QPState, fatal bool)
	// NoteLastWQE is called when a queue pair with an SRQ has moved to ERR, consumes no more receive requests, and the
	// completions of the consumed ones are published. It runs under the lease.
	NoteLastWQE func()
	// NoteEvent is called for other events of a connected queue pair: EventCommEst, EventSQDrained,
	// EventQPReqErr, EventQPAccessErr, EventPathMigErr. It runs under the lease.
	NoteEvent func(ib.EventType)
}

// Service implements a queue pair's transport service: Datagrams or a Connection.
//
// send returns done if the queue is empty or the queue pair cannot send in its current state. It returns not done if
// the queue pair's turn or the round's budget has ended, or the link has no free frame; the queue pair then gets
// another turn. moved reports whether it sent or flushed anything.
type Service interface {
	open(e *Engine, qp *QP)               // the queue pair is added
	close()                               // it is removed
	halt()                                // it stops, after a fault
	enter(state ib.QPState)               // its state changes
	receive(a *arrival) Drop              // handles a packet
	send(d *departure) (moved, done bool) // sends packets; see Service
	flush()                               // in ERR: flushes the receive requests that are consumed and not completed
	leaving() bool                        // see QP.Leaving
	psn() *wire.PSN                       // of the next packet to send
	touch() uint32                        // reads the fields that a packet needs first; see fetch
}

// Serve sets the service of a queue pair, before the queue pair is added.
func (qp *QP) Serve(s Service) { qp.service = s }

// PSN returns the PSN of the next packet to send. It runs in Do.
func (qp *QP) PSN() wire.PSN { return *qp.service.psn() }

// SetPSN sets the PSN of the next packet to send, before RTS. It runs in Do.
func (qp *QP) SetPSN(psn wire.PSN) { *qp.service.psn() = psn }

// Leaving reports whether a close of the queue pair should wait, because send requests have packets that are not sent
// yet and can be sent. Packets that are sent and not acknowledged do not count: a dead peer never acknowledges them.
func (qp *QP) Leaving() bool { return qp.service.leaving() }

// cqs returns the CQs of the queue pair: none for an XRC target.
func (qp *QP) cqs() []*CQ {
	if qp.Domain != nil {
		return nil
	}
	return []*CQ{qp.SendCQ, qp.RecvCQ}
}

// Tally counts a queue pair's packets and their payload bytes since SetTally: delivered ones, and sent ones including
// retransmissions. It is read in Do.
type Tally struct{ Received, ReceivedBytes, Sent, SentBytes uint64 }

// SetTally starts counting into t; nil stops it. It runs in Do.
func (qp *QP) SetTally(t *Tally) { qp.tally = t }

func (t *Tally) received(packets uint64, bytes int) {
	t.Received += packets
	t.ReceivedBytes += uint64(bytes)
}

func (t *Tally) sent(packets uint64, bytes int) {
	t.Sent += packets
	t.SentBytes += uint64(bytes)
}

// SetState changes the state on behalf of the control plane. RESET empties the queues without completions. ERR flushes
// them: up to changeBudget requests immediately, the rest in the queue pair's turns. It runs in Do.
func (qp *QP) SetState(state ib.QPState) {
	e := qp.Session.engine
	qp.setState(state)
	switch state {
	case ib.QPStateReset:
		qp.Send.Skip()
		if qp.SRQ == nil {
			qp.Recv.Skip()
		}
		e.round.turns.remove(qp)
	case ib.QPStateErr:
		if _, done := qp.flush(); done {
			e.round.turns.remove(qp)
		}
	}
}

func (qp *QP) setState(state ib.QPState) {
	e := qp.Session.engine
	qp.service.enter(state)
	if shares := qp.SRQ != nil || qp.Domain != nil; !shares {
		qp.Recv.SetFlush(state == ib.QPStateErr)
	} else if state == ib.QPStateErr && qp.State != state {
		e.completions.ended = append(e.completions.ended, qp)
	}
	qp.Send.SetFailed(state == ib.QPStateErr)
	qp.State = state
	if state != ib.QPStateReset {
		e.round.turns.add(qp) // the new state may allow queued requests
	}
}

// fail moves a queue pair to ERR and reports that to the control plane; see QP.NoteState. Its outstanding requests are
// flushed in order, in its turns. A queue pair in RESET stays there: it has no requests, and the transition to ERR is
// not allowed.
func (qp *QP) fail(fatal bool) {
	if qp.moveToErr() {
		qp.NoteState(ib.QPStateErr, fatal)
	}
}

// moveToErr is fail without the report. It returns whether the state has changed.
func (qp *QP) moveToErr() bool {
	if qp.State == ib.QPStateErr || qp.State == ib.QPStateReset {
		return false
	}
	qp.setState(ib.QPStateErr)
	return true
}

// stopSending moves a queue pair to SQE, after one of its requests has failed.
func (qp *QP) stopSending() {
	qp.setState(ib.QPStateSQE)
	qp.NoteState(ib.QPStateSQE, false)
}

// flush completes the outstanding requests of a queue pair with WR_FLUSH_ERR, in order: sends in SQE and ERR, receives
// in ERR only. The receive requests of an SRQ are left for its other queue pairs. done is false if the budget ends
// first.
func (qp *QP) flush() (moved, done bool) {
	e := qp.Session.engine
	defer qp.Send.Publish()
	for ; e.round.budget > 0 && qp.Send.Available() > 0; e.round.budget-- {
		e.completions.failSend(qp, qp.Send.ID(), ib.WCWRFlushErr)
		qp.Send.Advance(true)
		moved = true
	}
	if qp.State == ib.QPStateErr {
		qp.service.flush() // before the receive requests that were not consumed
	}
	if qp.State != ib.QPStateErr || qp.SRQ != nil {
		return moved, e.round.budget > 0
	}
	var recv ring.Recv
	for ; e.round.budget > 0 && qp.Recv.Peek(&recv); e.round.budget-- {
		qp.Recv.Advance()
		e.completions.completeRecv(qp, recv.ID, ib.WCWRFlushErr)
		moved = true
	}
	return moved, e.round.budget > 0
}
