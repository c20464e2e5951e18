package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What RunModel has found: each was a difference once.
var foundTests = []test{
	{name: "post to ERR that the card set", run: postToFailed},
	{name: "post to ERR that the card set, on an SRQ", run: postToFailedOnSRQ},
	{name: "drain in ERR that the card set", run: drainFailed},
	{name: "an overrun leaves RESET alone", run: overrunInReset},
	{name: "an overrun by a failed send", run: overrunByFailedSend},
	{name: "poll of nothing after an overrun", run: pollOfNothing},
	{name: "inline of no bytes needs no key", run: inlineOfNothing},
}

// failed makes a queue pair that the card moves from a state to ERR: an overrun of its CQ does that.
func (w *world) failed(from verbs.QPState) *verbs.QP {
	w.b.Helper()
	cq, qps := w.b.overrunnable(1)
	qp := w.b.newQPWith(verbs.QPInitAttr{SendCQ: w.b.cq, RecvCQ: cq, Cap: defaultCap()})
	toInit(w.b, qp)
	to(w.b, qp, verbs.QPStateRTR)
	if from == verbs.QPStateSQD {
		toRTS(w.b, qp, 0)
		to(w.b, qp, from)
	}
	w.overrun(qps[0], cq, 1)
	w.settle()
	return qp
}

// So with a queue pair on an SRQ, which has no receive queue.
func postToFailedOnSRQ(t *testing.T, w *world) {
	a, b := w.a, w.b
	srq, err := b.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 8})
	check(t, err)
	qp := b.newQPWith(verbs.QPInitAttr{SendCQ: b.cq, RecvCQ: b.cq, SRQ: srq, Cap: defaultCap()})
	toInit(t, qp)
	to(t, qp, verbs.QPStateRTR)
	ah := b.ah(a.end.IPv4)
	wr := b.send(7, ah, a.qp)
	refused(t, qp.PostSend([]verbs.SendWR{wr}), unix.EINVAL, "RTR")
	check(t, srq.PostRecv([]verbs.RecvWR{{ID: 9, SGList: []verbs.SGE{{LKey: 12345, Length: 100}}}}))
	a.post(a.send(1, a.ah(b.end.IPv4), qp))
	b.expect(outcome{9, verbs.WCLocProtErr})
	w.settle()
	check(t, qp.PostSend([]verbs.SendWR{wr}))
	b.expect(flushed(7))
}

// In ERR requests are flushed, whether the program or the card moved the queue pair there.
func postToFailed(t *testing.T, w *world) {
	b := w.b
	qp := w.failed(verbs.QPStateRTR)
	check(t, qp.PostSend([]verbs.SendWR{b.send(7, b.ah(w.a.end.IPv4), w.a.qp)}))
	b.expect(flushed(7))
	check(t, qp.Close())
	refused(t, qp.PostSend([]verbs.SendWR{b.send(7, b.ah(w.a.end.IPv4), w.a.qp)}), verbs.ErrObjectClosed)
}

// SQD holds requests back, but not in ERR.
func drainFailed(t *testing.T, w *world) {
	b := w.b
	qp := w.failed(verbs.QPStateSQD)
	check(t, qp.PostSend([]verbs.SendWR{b.send(7, b.ah(w.a.end.IPv4), w.a.qp), b.send(8, b.ah(w.a.end.IPv4), w.a.qp)}))
	drained(t, qp)
	b.expect(flushed(7), flushed(8))
}

// From RESET there is no way to ERR: such a queue pair stays there, and no event comes of it. That its CQ
// is of no use any more, it is told when it begins.
func overrunInReset(t *testing.T, w *world) {
	cq, qps := w.b.overrunnable(1)
	reset := w.b.newQPWith(verbs.QPInitAttr{SendCQ: w.b.cq, RecvCQ: cq, Cap: defaultCap()})
	w.overrun(qps[0], cq, 1)
	w.b.expectEvents(cqErr(cq), qpFatal(qps[0]))
	w.b.noEvent()
	if state := stateOf(t, reset); state != verbs.QPStateReset {
		t.Errorf("state %v", state)
	}
	refused(t, reset.Activate(testQKey), verbs.ErrCQOverrun)
}

// A send fails, and its completion is one too many: the queue pair is in ERR, not in SQE, from which it
// could go on.
func overrunByFailedSend(t *testing.T, w *world) {
	a := w.a
	cq := a.newCQ(1)
	qp := a.newQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: a.cq, Cap: defaultCap()})
	check(t, qp.Activate(testQKey))
	ah := a.ah(w.b.end.IPv4)
	for i := range cq.Capacity() {
		check(t, qp.PostSend([]verbs.SendWR{a.send(uint64(i), ah, w.b.qp)}))
		drained(t, qp)
	}
	bad := a.send(99, ah, w.b.qp, verbs.SGE{LKey: 12345, Length: 1})
	check(t, qp.PostSend([]verbs.SendWR{bad}))
	drained(t, qp)
	if state := stateOf(t, qp); state != verbs.QPStateErr {
		t.Errorf("state %v", state)
	}
}

// A poll with no room takes nothing, so it does not say that nothing is left.
func pollOfNothing(t *testing.T, w *world) {
	cq, qps := w.b.overrunnable(1)
	w.overrun(qps[0], cq, 1)
	w.settle()
	n, err := cq.Poll(nil)
	if n != 0 || err != nil {
		t.Errorf("with completions left: %d, %v", n, err)
	}
	w.b.waitOn(cq, cq.Capacity())
	_, err = cq.Poll(nil)
	refused(t, err, unix.EOVERFLOW)
}

func inlineOfNothing(t *testing.T, w *world) {
	wr := w.a.send(1, w.a.ah(w.b.end.IPv4), w.b.qp, verbs.SGE{LKey: 12345})
	wr.Flags |= verbs.SendInline
	w.b.receive(0)
	w.a.post(wr)
	w.a.expect(ok(1))
	if got := w.b.expect(ok(0)); got[0].ByteLen != 40 {
		t.Errorf("%d bytes", got[0].ByteLen)
	}
}
