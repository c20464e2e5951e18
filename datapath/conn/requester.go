// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Requester is the half of a connection that sends requests (IBA 9.7.2 to 9.7.5).
//
// Packets are sent in the order of their PSNs. oldest is the first PSN that is not acknowledged. PSN is the next to
// send. newest follows the last PSN that was ever sent: a packet below newest is a retransmission.
//
//	      oldest            PSN             newest
//	───────┴─ sent ─────────┴─ sent before ───┴──────►
type Requester struct {
	*Attr
	QP       QueuePair
	Counters *Counters

	Queue      *ring.SendConsumer
	SigAll     bool   // every request generates a completion
	MaxInline  uint32 // maximum inline data, in bytes
	MaxSendSGE uint32

	PSN   wire.PSN // of the next packet to send
	Mends bool     // lost packets are retransmitted before the timeout, and alone if possible; see mending
	progress
}

// progress is the state of a requester between two resets.
type progress struct {
	state          ib.QPState
	works          works
	current        uint32 // index in works of the request to send next; works.count: the next posted request
	oldest, newest wire.PSN
	afterRead      wire.PSN // end of the last READ that was sent; oldest if that is later
	lastLong       wire.PSN // end of the last long packet; the initial PSN if there was none
	reads          int      // number of outstanding request packets of READs (one for each part) and atomics
	atOnce         int      // maximum number of READs and atomics outstanding so far: a peer may keep no more
	asked          uint64   // number of requested response packets that have not arrived, including repeated requests
	window         window
	mending
	trip
	retries    uint8 // number of remaining retries; see Attr.RetryCnt
	rnrRetries uint8 // number of remaining RNR retries; see Attr.RNRRetry
	rnrWait    bool  // an RNR wait is in progress
	silent     bool  // the local ACK timeout has expired, and no response has arrived since
	unsent     bool  // no packet has been sent since goBack
	again      bool  // a loss is being handled: further indications of it are ignored until oldest advances
	draining   bool  // in SQD, and EventSQDrained is not sent yet
	turn       Turn
	deadline   time.Time // zero: none
}

// Enter prepares for a new state of the queue pair.
func (r *Requester) Enter(state ib.QPState) {
	switch {
	case state == ib.QPStateReset:
		r.progress = progress{}
	case state == ib.QPStateRTS && r.state == ib.QPStateRTR:
		r.begin()
	case state == ib.QPStateErr || state == ib.QPStateSQE: // begun requests are flushed with the others
		r.deadline = time.Time{}
		r.cut(0)
	case state == ib.QPStateSQD && r.state != state:
		r.draining = r.NotifyDrained
	}
	r.state = state
}

// begin prepares a requester for its first PSN.
func (r *Requester) begin() {
	r.progress = progress{state: r.state, oldest: r.PSN, newest: r.PSN, afterRead: r.PSN, lastLong: r.PSN, window: window{size: firstWindow}}
	r.refreshRetries()
}

func (r *Requester) refreshRetries() { r.retries, r.rnrRetries = r.RetryCnt, r.RNRRetry }

// Turn returns the requested turn and clears the request. A turn is requested if there may be packets to send.
func (r *Requester) Turn() (t Turn) {
	t, r.turn = r.turn, NoTurn
	return t
}

// Begun returns the number of requests that have been taken from the queue and not completed.
func (r *Requester) Begun() uint32 { return r.works.count }

// Unasked reports whether packets were sent after the last one that requests an acknowledgement.
func (r *Requester) Unasked() bool { return r.window.unasked > 0 }

// Oldest returns the first PSN that is not acknowledged.
func (r *Requester) Oldest() wire.PSN { return r.oldest }

// Leaving reports whether some requests have packets that are not sent yet and can be sent. Packets beyond the window
// can be sent only when acknowledgements arrive. A dead peer sends none, so Leaving returns false after the first
// retransmission.
func (r *Requester) Leaving() bool {
	begun := r.current < r.works.count || r.Queue.Behind(r.works.count) > 0
	return begun && !r.rnrWait && r.retries == r.RetryCnt
}

// take checks the next posted request and adds it to works. It returns false if no request is posted, or if the request
// must wait for earlier ones.
func (r *Requester) take() bool {
	if r.state != ib.QPStateRTS || r.failing() {
		r.drained()
		return false
	}
	if r.Queue.Behind(r.works.count) == 0 {
		return false
	}
	w := r.works.add()
	data := r.Queue.GetConnected(r.works.count-1, &w.SendConnected)
	if r.mustWait(w) || !r.prepare(w, data) {
		r.works.count--
		return false
	}
	return true
}

// prepare checks a request and assigns its PSNs. It returns false if more than half of all PSNs would be in use.
func (r *Requester) prepare(w *work, data []byte) bool {
	if r.check(w, data); !w.local() && w.status == ib.WCSuccess {
		w.packets, w.first = packetsOf(w.length, r.MTU), r.PSN
		w.parts = whole(w.packets)
		return r.PSN.Ahead(r.oldest)+int(w.packets) <= int(wire.PSNMask)/2
	}
	return true
}

// failing reports whether the last request taken cannot be executed: no later request is taken.
func (r *Requester) failing() bool {
	return r.works.count > 0 && r.works.at(r.works.count-1).status != ib.WCSuccess
}

// mustWait reports whether the last request of works must wait for earlier ones: a local request waits for all of them,
// a fenced request for READs and atomics (IBA 10.8.3.3), and a READ or atomic until fewer than MaxRDAtomic are
// outstanding.
func (r *Requester) mustWait(w *work) bool {
	return w.local() && r.works.count > 1 ||
		w.Flags&ib.SendFence != 0 && r.reads > 0 ||
		w.wantsAnswer() && r.reads >= r.mostReads()
}

// check validates the copy of a request, and sets its length and status.
func (r *Requester) check(w *work, data []byte) {
	length, status := 0, ib.WCSuccess
	switch {
	case !w.Opcode.On(r.Service), w.wantsAnswer() && r.MaxRDAtomic == 0:
		status = ib.WCLocQPOpErr
	case w.local():
	case w.atomic() && (w.SGECount != 1 || w.Flags&ib.SendInline != 0), w.Opcode == ib.WRRDMARead && w.Flags&ib.SendInline != 0:
		status = ib.WCLocQPOpErr
	case w.Flags&ib.SendInline != 0:
		if length = int(w.InlineLen); w.InlineLen > r.MaxInline || length > len(data) {
			status = ib.WCLocLenErr
		}
	default:
		if w.atomic() {
			w.operands = ring.GetAtomic(data)
		}
		length, status = r.measure(w, data)
	}
	if status == ib.WCSuccess && (length > ring.MaxMessage || w.atomic() && length != atomicSize) {
		status = ib.WCLocLenErr
	}
	w.length, w.status = uint32(length), status
}

// runLocal executes a local request: a bind, a fast registration or an invalidation.
func (r *Requester) runLocal(w *work) ib.WCStatus {
	switch w.Opcode {
	case ib.WRBindMW:
		return r.QP.Bind(w.RKey, w.RemoteAddr, ring.GetBind(r.Queue.Data(0)))
	case ib.WRRegMR, ib.WRRegMRIntegrity:
		return r.QP.Register(w.RKey, w.RemoteAddr, ring.GetReg(r.Queue.Data(0)), w.Opcode == ib.WRRegMRIntegrity)
	}
	if !r.QP.Invalidate(w.InvalidateRKey(), false) {
		return ib.WCMWBindErr // the status of all memory management operations (IBA 11.6.2)
	}
	return ib.WCSuccess
}

// finish completes the oldest request with a status.
func (r *Requester) finish(status ib.WCStatus) {
	w := r.works.at(0)
	if status != ib.WCSuccess {
		r.fail(status)
		return
	}
	done := Completion{ID: w.ID, Status: ib.WCSuccess, Opcode: w.Opcode.Completes(), ByteLen: w.length}
	signaled := r.SigAll || w.Flags&ib.SendSignaled != 0
	r.Queue.Advance(signaled)
	r.works.drop()
	r.current -= min(r.current, 1)
	if signaled { // last, as an overrun moves the queue pair to ERR
		r.QP.CompleteSend(done)
	}
}

// fail completes the oldest request with an error, and moves the queue pair to ERR or, for UC, to SQE. Later requests
// are flushed.
func (r *Requester) fail(status ib.WCStatus) {
	w := r.works.at(0)
	r.QP.CompleteSend(Completion{ID: w.ID, Status: status, Opcode: w.Opcode.Completes(), Solicited: true})
	r.Queue.Advance(true)
	if r.Reliable() {
		r.QP.Fail(ib.QPStateErr)
	} else {
		r.QP.Fail(ib.QPStateSQE)
	}
}

// failFirst completes a request that cannot be executed with its error, if all earlier requests are completed.
func (r *Requester) failFirst() Step {
	if r.works.count > 1 {
		return Idle
	}
	r.fail(r.works.at(0).status)
	return Worked
}

// cut removes the requests from an index on from works.
func (r *Requester) cut(from uint32) {
	for ; r.works.count > from; r.works.count-- {
		r.reads -= r.works.at(r.works.count - 1).outstanding(r.newest)
	}
	r.current = min(r.current, from)
}

// drained sends EventSQDrained once, if a queue pair in SQD has finished the requests that it had begun.
func (r *Requester) drained() {
	if r.state == ib.QPStateSQD && r.draining && r.works.count == 0 {
		r.draining = false
		r.QP.Note(ib.EventSQDrained)
	}
}
