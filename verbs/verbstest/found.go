// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// foundTests are regression tests of differences that Run of package model has found.
var foundTests = []rig.Test{
	{Name: "post to ERR that the card set", Run: postToFailed},
	{Name: "post to ERR that the card set, on an SRQ", Run: postToFailedOnSRQ},
	{Name: "drain in ERR that the card set", Run: drainFailed},
	{Name: "an overrun leaves RESET alone", Run: overrunInReset},
	{Name: "an overrun by a failed send", Run: overrunByFailedSend},
	{Name: "poll of nothing after an overrun", Run: pollOfNothing},
	{Name: "inline of no bytes needs no key", Run: inlineOfNothing},
}

// In ERR requests of a queue pair on an SRQ, which has no receive queue, are flushed too.
func postToFailedOnSRQ(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	srq, err := b.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 8})
	rig.Check(t, err)
	qp := b.NewQPWith(verbs.QPInitAttr{SendCQ: b.CQ, RecvCQ: b.CQ, SRQ: srq, Cap: rig.DefaultCap()})
	rig.ToInit(t, qp)
	rig.To(t, qp, verbs.QPStateRTR)
	ah := b.AH(a.End.IPv4)
	wr := b.Send(7, ah, a.QP)
	rig.Refused(t, qp.PostSend([]verbs.SendWR{wr}), unix.EINVAL, "RTR")
	rig.Check(t, srq.PostRecv([]verbs.RecvWR{{ID: 9, SGList: []verbs.SGE{{LKey: 12345, Length: 100}}}}))
	a.Post(a.Send(1, a.AH(b.End.IPv4), qp))
	b.Expect(rig.Ended(9, verbs.WCLocProtErr))
	w.Settle()
	rig.Check(t, qp.PostSend([]verbs.SendWR{wr}))
	b.Expect(rig.Flushed(7))
}

// In ERR requests are flushed, whether the program or the card moved the queue pair there.
func postToFailed(t *testing.T, w *rig.World) {
	b := w.B
	qp := w.Failed(verbs.QPStateRTR)
	rig.Check(t, qp.PostSend([]verbs.SendWR{b.Send(7, b.AH(w.A.End.IPv4), w.A.QP)}))
	b.Expect(rig.Flushed(7))
	rig.Check(t, qp.Close())
	rig.Refused(t, qp.PostSend([]verbs.SendWR{b.Send(7, b.AH(w.A.End.IPv4), w.A.QP)}), verbs.ErrObjectClosed)
}

// Requests posted in SQD wait, but are flushed if the card has moved the queue pair to ERR.
func drainFailed(t *testing.T, w *rig.World) {
	b := w.B
	qp := w.Failed(verbs.QPStateSQD)
	rig.Check(t, qp.PostSend([]verbs.SendWR{b.Send(7, b.AH(w.A.End.IPv4), w.A.QP), b.Send(8, b.AH(w.A.End.IPv4), w.A.QP)}))
	rig.Drained(t, qp)
	b.Expect(rig.Flushed(7), rig.Flushed(8))
}

// A queue pair in RESET cannot change to ERR: it stays in RESET without an event. The failure of its CQ is reported
// when the queue pair leaves RESET.
func overrunInReset(t *testing.T, w *rig.World) {
	cq, qps := w.B.Overrunnable(1)
	reset := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: cq, Cap: rig.DefaultCap()})
	w.Overrun(qps[0], cq, 1)
	w.B.ExpectEvents(cqErr(cq), qpFatal(qps[0]))
	w.B.NoEvent()
	if state := rig.StateOf(t, reset); state != verbs.QPStateReset {
		t.Errorf("state %v", state)
	}
	rig.Refused(t, reset.Activate(rig.TestQKey), verbs.ErrCQOverrun)
}

// If the completion of a failed send overruns the CQ, the queue pair is in ERR, not in SQE, from which it could
// continue.
func overrunByFailedSend(t *testing.T, w *rig.World) {
	a := w.A
	cq := a.NewCQ(1)
	qp := a.NewQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: a.CQ, Cap: rig.DefaultCap()})
	rig.Check(t, qp.Activate(rig.TestQKey))
	ah := a.AH(w.B.End.IPv4)
	for i := range cq.Capacity() {
		rig.Check(t, qp.PostSend([]verbs.SendWR{a.Send(uint64(i), ah, w.B.QP)}))
		rig.Drained(t, qp)
	}
	bad := a.Send(99, ah, w.B.QP, verbs.SGE{LKey: 12345, Length: 1})
	rig.Check(t, qp.PostSend([]verbs.SendWR{bad}))
	rig.Drained(t, qp)
	if state := rig.StateOf(t, qp); state != verbs.QPStateErr {
		t.Errorf("state %v", state)
	}
}

// A poll without room for completions removes none, and does not report that none are left.
func pollOfNothing(t *testing.T, w *rig.World) {
	cq, qps := w.B.Overrunnable(1)
	w.Overrun(qps[0], cq, 1)
	w.Settle()
	n, err := cq.Poll(nil)
	if n != 0 || err != nil {
		t.Errorf("with completions left: %d, %v", n, err)
	}
	w.B.WaitOn(cq, cq.Capacity())
	_, err = cq.Poll(nil)
	rig.Refused(t, err, unix.EOVERFLOW)
}

func inlineOfNothing(t *testing.T, w *rig.World) {
	wr := w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP, verbs.SGE{LKey: 12345})
	wr.Flags |= verbs.SendInline
	w.B.Receive(0)
	w.A.Post(wr)
	w.A.Expect(rig.OK(1))
	if got := w.B.Expect(rig.OK(0)); got[0].ByteLen != 40 {
		t.Errorf("%d bytes", got[0].ByteLen)
	}
}
