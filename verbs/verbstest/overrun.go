// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var overrunTests = []rig.Test{
	{Name: "CQ overrun", Run: cqOverrun},
	{Name: "overrun events", Run: overrunEvents},
	{Name: "overrun CQ takes no queue pair", Run: overrunTakesNone},
	{Name: "overrun CQ and groups", Run: overrunInGroup},
	{Name: "overrun while a queue pair begins", Run: overrunWhileBegun, Rounds: 20},
}

// cqOverrun checks that an overrun CQ returns errors and that its queue pairs fail.
func cqOverrun(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	small, qps := b.Overrunnable(1)
	w.Overrun(qps[0], small, 2)
	w.Settle()
	var all []rig.Outcome
	for i := range small.Capacity() {
		all = append(all, rig.OK(uint64(i)))
	}
	rig.Same(t, b.WaitOn(small, len(all)), all...)
	var wcs [4]verbs.WC
	_, err := small.Poll(wcs[:])
	rig.Refused(t, err, unix.EOVERFLOW, fmt.Sprintf("%d completions", small.Capacity()), "poll CQ: ", "create one for all requests")
	_, err = small.Wait(rig.Guard(t), wcs[:])
	rig.Refused(t, err, unix.EOVERFLOW, "wait for CQ: ")
	_, err = kernel.PeekCQ(small, 1)
	rig.Refused(t, err, unix.EOVERFLOW, "peek CQ: ")
	if state := rig.StateOf(t, qps[0]); state != verbs.QPStateErr {
		t.Errorf("state %v", state)
	}
	b.ExpectDrops(map[string]uint64{"cq_full": 1, "qp_state": 1})
	// Other CQs still work.
	b.Receive(0)
	a.Post(a.Send(1, a.AH(b.End.IPv4), b.QP))
	b.Expect(rig.OK(0))
}

// overrunEvents checks that an overrun causes an event of the CQ and of each queue pair that it moved to ERR. Queue
// pairs that were in ERR before and those of other CQs have no event.
func overrunEvents(t *testing.T, w *rig.World) {
	cq, qps := w.B.Overrunnable(3)
	rig.To(t, qps[1], verbs.QPStateErr)
	w.Overrun(qps[0], cq, 1)
	w.B.ExpectEvents(cqErr(cq), qpFatal(qps[0]), qpFatal(qps[2]))
	w.B.NoEvent()
	for i, qp := range append(qps, w.B.QP) {
		if state := rig.StateOf(t, qp); (state == verbs.QPStateErr) != (i < 3) {
			t.Errorf("queue pair %d is in %v", i, state)
		}
	}
}

// overrunTakesNone checks that no queue pair can be created on an overrun CQ or leave RESET.
func overrunTakesNone(t *testing.T, w *rig.World) {
	b := w.B
	cq, qps := b.Overrunnable(3)
	rig.To(t, qps[1], verbs.QPStateReset)
	w.Overrun(qps[0], cq, 1)
	b.ExpectEvents(cqErr(cq), qpFatal(qps[0]), qpFatal(qps[2]))
	for _, init := range []verbs.QPInitAttr{{SendCQ: cq, RecvCQ: b.CQ}, {SendCQ: b.CQ, RecvCQ: cq}} {
		init.Type, init.Cap = verbs.QPTypeUD, rig.DefaultCap()
		_, err := b.PD.CreateQP(&init)
		rig.Refused(t, err, verbs.ErrCQOverrun, "create QP", "make another CQ")
	}
	rig.To(t, qps[0], verbs.QPStateReset)
	for _, qp := range qps[:2] {
		rig.Refused(t, qp.Activate(rig.TestQKey), unix.EOVERFLOW, "modify QP", "make another CQ")
		rig.To(t, qp, verbs.QPStateReset)
		if state := rig.StateOf(t, qp); state != verbs.QPStateReset {
			t.Errorf("state %v", state)
		}
		rig.Check(t, qp.Close())
	}
	rig.Check(t, qps[2].Close())
	rig.Check(t, cq.Close())
}

// overrunInGroup checks that an attached queue pair in RESET on an overrun CQ can be detached and destroyed.
func overrunInGroup(t *testing.T, w *rig.World) {
	cq, qps := w.B.Overrunnable(1)
	qp, mgid := qps[0], rig.GID(rig.GroupV4)
	rig.Check(t, qp.AttachMcast(mgid, 0))
	w.Overrun(qp, cq, 1)
	w.B.ExpectEvents(cqErr(cq), qpFatal(qp))
	rig.To(t, qp, verbs.QPStateReset)
	rig.Refused(t, qp.Close(), unix.EBUSY)
	rig.Refused(t, qp.AttachMcast(rig.GID(rig.OtherGroup), 0), verbs.ErrState)
	rig.Check(t, qp.DetachMcast(mgid, 0))
	rig.Check(t, qp.Close())
	rig.Check(t, cq.Close())
}

// overrunWhileBegun activates queue pairs on a CQ while it is overrun. Each call must fail, or the queue pair must
// change to ERR.
func overrunWhileBegun(t *testing.T, w *rig.World) {
	cq := w.B.NewCQ(4)
	flood := w.B.Flushing(cq, 64)
	var begun []*verbs.QP
	done := make(chan error, 1)
	go func() {
		var err error
		for id := 0; id < 32 && err == nil; id++ {
			err = flood.PostRecv([]verbs.RecvWR{{ID: uint64(id)}})
		}
		done <- err
	}()
	refusal := error(nil)
	for refusal == nil {
		if len(begun) == 8 {
			rig.Check(t, begun[0].Close())
			begun = begun[1:]
		}
		rig.Same(t, rig.Completions(t, w.B.CQ)) // runs a card that has no worker
		var qp *verbs.QP
		if qp, refusal = w.B.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq}); refusal == nil {
			begun = append(begun, qp)
			refusal = qp.Activate(rig.TestQKey)
		}
	}
	rig.Check(t, <-done)
	if verbs.KindOf(refusal) != verbs.ErrCQOverrun && verbs.KindOf(refusal) != verbs.ErrState {
		t.Error(refusal)
	}
	for _, qp := range begun {
		if state := rig.StateOf(t, qp); state != verbs.QPStateErr && state != verbs.QPStateReset {
			t.Errorf("a queue pair on an overrun CQ is in %v", state)
		}
		rig.Check(t, qp.Close())
	}
	rig.Check(t, flood.Close())
	rig.Check(t, cq.Close())
}
