package datapath

import (
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// QP is the engine's entry of a queue pair. Recv is its own queue or its SRQ's, in which case SRQ
// is set; RecvPD is the PD of the memory that receives may write to: the SRQ's or its own.
type QP struct {
	// What a packet that arrives needs comes first: of ten thousand queue pairs hardly any is in the cache.
	Session *Session
	service Service
	Recv    *ring.RecvConsumer
	RecvCQ  *CQ    // nil of an XRC target, as SendCQ is
	tally   *Tally // nil if nobody counts
	Number  wire.QPN
	QKey    wire.QKey
	RecvPD  region.PD
	PKey    wire.PKey
	State   ib.QPState
	SigAll  bool
	SRQ     *SRQ // nil if it has a queue of its own

	Send            *ring.SendConsumer
	SendCQ          *CQ
	PD              region.PD
	DoorbellIndex   uint32 // its bit in the session's doorbell
	CompletionToken uint32 // in each of its completions: CQE.Token
	MaxInline       uint32
	MaxSendSGE      uint32
	// NoSelfLoopback: the queue pair does not receive its own messages to groups.
	NoSelfLoopback bool
	waiting        bool    // it is in the engine's turns
	before, behind *QP     // its neighbours there
	Domain         *Domain // of an XRC target, which has neither queues nor CQs of its own

	// NoteState is called when the engine itself changes the state (to SQE or ERR). fatal means
	// that no completion reports it, because the CQ was overrun. It runs under the lease.
	NoteState func(s ib.QPState, fatal bool)
	// NoteLastWQE is called when a queue pair with an SRQ has gone to ERR: it takes no more receives,
	// and the completions of those that it took are published. It runs under the lease.
	NoteLastWQE func()
	// NoteEvent is called for other events of a connected queue pair: EventCommEst, EventSQDrained,
	// EventQPReqErr, EventQPAccessErr, EventPathMigErr. It runs under the lease.
	NoteEvent func(ib.EventType)
}

// Service is what a queue pair does with packets and requests: Datagrams, or a Connection. Its send is done when the queue
// is empty or the state of the queue pair holds it back. It also stops, not done, when the queue pair's turn or the round's
// budget ends, or when the link has no free frame.
type Service interface {
	open(e *Engine, qp *QP)               // the queue pair is added
	close()                               // it is removed
	halt()                                // it stops, after a fault
	enter(state ib.QPState)               // its state changes
	receive(a *arrival) Drop              // a packet
	send(d *departure) (moved, done bool) // its turn; see Service
	flush()                               // it is in ERR: what is taken and not completed is flushed
	leaving() bool                        // see QP.Leaving
	psn() *wire.PSN                       // of the next packet to send
	touch() uint32                        // reads what a packet needs first; see fetch
}

// Serve gives a queue pair its service, before it is added.
func (qp *QP) Serve(s Service) { qp.service = s }

// PSN is that of the next packet to send. It runs in Do.
func (qp *QP) PSN() wire.PSN { return *qp.service.psn() }

// SetPSN sets it, before RTS. It runs in Do.
func (qp *QP) SetPSN(psn wire.PSN) { *qp.service.psn() = psn }

// Leaving says whether who closes a queue pair is to wait for its send requests: some have not wholly left, and
// can still. It is not to wait for answers: a peer that is dead gives none, and requests that were sent are
// completed by nothing else.
func (qp *QP) Leaving() bool { return qp.service.leaving() }

// cqs are those that it completes to itself: none of an XRC target.
func (qp *QP) cqs() []*CQ {
	if qp.Domain != nil {
		return nil
	}
	return []*CQ{qp.SendCQ, qp.RecvCQ}
}

// Tally counts the packets of a queue pair, and their bytes of payload, from when it is set: those that were delivered
// to it, and those that it sent, with what was sent again. It is read in Do.
type Tally struct{ Received, ReceivedBytes, Sent, SentBytes uint64 }

// SetTally has a queue pair counted; nil ends that. It runs in Do.
func (qp *QP) SetTally(t *Tally) { qp.tally = t }

func (t *Tally) received(packets uint64, bytes int) {
	t.Received += packets
	t.ReceivedBytes += uint64(bytes)
}

func (t *Tally) sent(packets uint64, bytes int) {
	t.Sent += packets
	t.SentBytes += uint64(bytes)
}

// SetState moves a queue pair to a state that the control plane chose. RESET empties its queues
// without completions. ERR flushes them: at once as far as changeBudget allows, the rest when the
// queue pair has its turn. It runs in Do.
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
		e.round.turns.add(qp) // the new state may allow requests that wait in the queue
	}
}

// fail moves a queue pair to ERR and reports that to the control plane; see QP.NoteState. Its
// outstanding requests are flushed in order when it has its turn. One in RESET stays
// there: it has none, and from RESET there is no way to ERR.
func (qp *QP) fail(fatal bool) {
	if qp.moveToErr() {
		qp.NoteState(ib.QPStateErr, fatal)
	}
}

// moveToErr is fail without the report. It returns false if the state stays.
func (qp *QP) moveToErr() bool {
	if qp.State == ib.QPStateErr || qp.State == ib.QPStateReset {
		return false
	}
	qp.setState(ib.QPStateErr)
	return true
}

// stopSending moves a queue pair to SQE: a request of its could not be carried out.
func (qp *QP) stopSending() {
	qp.setState(ib.QPStateSQE)
	qp.NoteState(ib.QPStateSQE, false)
}

// flush completes the outstanding requests of a queue pair with WR_FLUSH_ERR, in order: sends in
// SQE and ERR, receives in ERR only. Those of an SRQ are left for its other queue pairs. It is not
// done if the budget ends first.
func (qp *QP) flush() (moved, done bool) {
	e := qp.Session.engine
	defer qp.Send.Publish()
	for ; e.round.budget > 0 && qp.Send.Available() > 0; e.round.budget-- {
		e.completions.failSend(qp, qp.Send.ID(), ib.WCWRFlushErr)
		qp.Send.Advance(true)
		moved = true
	}
	if qp.State == ib.QPStateErr {
		qp.service.flush() // before the receives that were not taken
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
