package conn

import (
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Requester is the half of a connection that sends requests (IBA 9.7.2 to 9.7.5).
//
// Packets are sent in the order of their PSNs. oldest is the first that is not acknowledged, PSN the next
// to send, newest the one after the last that was ever sent: what is sent below it is sent again.
//
//	      oldest            PSN             newest
//	───────┴─ sent ─────────┴─ sent before ───┴──────►
type Requester struct {
	*Attr
	QP       QueuePair
	Counters *Counters

	Queue      *ring.SendConsumer
	SigAll     bool   // every request has a completion
	MaxInline  uint32 // bytes of inline data
	MaxSendSGE uint32

	PSN   wire.PSN // of the next packet to send
	Mends bool     // what was lost is sent again sooner than the time-out, and alone where the peer keeps the rest
	progress
}

// progress is what a requester has in hand between two resets.
type progress struct {
	state          ib.QPState
	works          works
	current        uint32 // place among works of the request that is sent next; the count: one to be taken
	oldest, newest wire.PSN
	afterRead      wire.PSN // where the last READ that was sent ends, or oldest
	lastLong       wire.PSN // where the last long packet ends, or the first PSN
	reads          int      // requests of READs, of which one may have several, and atomics that are not answered
	atOnce         int      // the most READs and atomics that the program has had outstanding: the peer may keep no more requests
	asked          uint64   // responses that the peer was asked for, once or again, less those that came
	window         window
	mending
	trip
	retries    uint8 // left, see Attr.RetryCnt
	rnrRetries uint8
	rnrWait    bool // waits for the time of an RNR NAK
	silent     bool // the peer has not answered in time, and not since
	unsent     bool // has gone back to PSN, and nothing has left since
	again      bool // goes back to oldest; what was sent before does not count until it has moved
	draining   bool // in SQD, and that it is drained has not been said
	turn       Turn
	deadline   time.Time // zero: none
}

// Enter begins what a state of the queue pair is for.
func (r *Requester) Enter(state ib.QPState) {
	switch {
	case state == ib.QPStateReset:
		r.progress = progress{}
	case state == ib.QPStateRTS && r.state == ib.QPStateRTR:
		r.begin()
	case state == ib.QPStateErr || state == ib.QPStateSQE: // what was begun is flushed with the rest
		r.deadline = time.Time{}
		r.cut(0)
	case state == ib.QPStateSQD && r.state != state:
		r.draining = r.NotifyDrained
	}
	r.state = state
}

// begin prepares a requester that sends its PSN first.
func (r *Requester) begin() {
	r.progress = progress{state: r.state, oldest: r.PSN, newest: r.PSN, afterRead: r.PSN, lastLong: r.PSN, window: window{size: firstWindow}}
	r.refreshRetries()
}

func (r *Requester) refreshRetries() { r.retries, r.rnrRetries = r.RetryCnt, r.RNRRetry }

// Turn says, once, that there may be packets to send.
func (r *Requester) Turn() (t Turn) {
	t, r.turn = r.turn, NoTurn
	return t
}

// Begun is how many requests are taken and not completed.
func (r *Requester) Begun() uint32 { return r.works.count }

// Unasked says that packets are on their way, and no answer to the last of them is asked for.
func (r *Requester) Unasked() bool { return r.window.unasked > 0 }

// Oldest is the first PSN that is not acknowledged.
func (r *Requester) Oldest() wire.PSN { return r.oldest }

// Leaving says whether requests have not wholly left, and can still. Beyond what a window holds they leave as
// answers come; a peer that is dead gives none, so it ends with the first packet that had to be sent again.
func (r *Requester) Leaving() bool {
	begun := r.current < r.works.count || r.Queue.Behind(r.works.count) > 0
	return begun && !r.rnrWait && r.retries == r.RetryCnt
}

// take checks the next request that is posted, and adds it to those that are being sent. It returns false if
// there is none, or if it has to wait: for reads and atomics before it, or for all.
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

// prepare checks a request, and gives it its PSNs; false if they are too many beside those on their way.
func (r *Requester) prepare(w *work, data []byte) bool {
	if r.check(w, data); !w.local() && w.status == ib.WCSuccess {
		w.packets, w.first = packetsOf(w.length, r.MTU), r.PSN
		w.parts = whole(w.packets)
		return r.PSN.Ahead(r.oldest)+int(w.packets) <= int(wire.PSNMask)/2
	}
	return true
}

// failing says that the last request taken cannot be carried out: nothing is taken behind it.
func (r *Requester) failing() bool {
	return r.works.count > 0 && r.works.at(r.works.count-1).status != ib.WCSuccess
}

// mustWait says that a request, the last of the works, may not be begun before others are completed: a local one waits for all
// others, a fenced one for READs and atomics (IBA 10.8.3.3), and of these there may be MaxRDAtomic.
func (r *Requester) mustWait(w *work) bool {
	return w.local() && r.works.count > 1 ||
		w.Flags&ib.SendFence != 0 && r.reads > 0 ||
		w.wantsAnswer() && r.reads >= r.mostReads()
}

// check checks the copy of a request, and measures its memory.
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

// runLocal carries out a request that has no packets.
func (r *Requester) runLocal(w *work) ib.WCStatus {
	switch w.Opcode {
	case ib.WRBindMW:
		return r.QP.Bind(w.RKey, w.RemoteAddr, ring.GetBind(r.Queue.Data(0)))
	case ib.WRRegMR, ib.WRRegMRIntegrity:
		return r.QP.Register(w.RKey, w.RemoteAddr, ring.GetReg(r.Queue.Data(0)), w.Opcode == ib.WRRegMRIntegrity)
	}
	if !r.QP.Invalidate(w.InvalidateRKey(), false) {
		return ib.WCMWBindErr // a memory management operation, like the others (IBA 11.6.2)
	}
	return ib.WCSuccess
}

// finish completes the oldest request.
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
	if signaled { // last: an overrun ends the queue pair, and all that is left of its requests
		r.QP.CompleteSend(done)
	}
}

// fail completes the oldest request with an error, and moves the queue pair to ERR or SQE: what is behind it is
// flushed.
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

// failFirst completes a request that cannot be carried out, once all before it are completed.
func (r *Requester) failFirst() Step {
	if r.works.count > 1 {
		return Idle
	}
	r.fail(r.works.at(0).status)
	return Worked
}

// cut forgets the requests from a place on.
func (r *Requester) cut(from uint32) {
	for ; r.works.count > from; r.works.count-- {
		r.reads -= r.works.at(r.works.count - 1).outstanding(r.newest)
	}
	r.current = min(r.current, from)
}

// drained says that a queue pair in SQD has finished what it had begun.
func (r *Requester) drained() {
	if r.state == ib.QPStateSQD && r.draining && r.works.count == 0 {
		r.draining = false
		r.QP.Note(ib.EventSQDrained)
	}
}
