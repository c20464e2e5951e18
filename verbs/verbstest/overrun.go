package verbstest

import (
	"fmt"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var overrunTests = []test{
	{name: "CQ overrun", run: cqOverrun},
	{name: "overrun events", run: overrunEvents},
	{name: "overrun CQ takes no queue pair", run: overrunTakesNone},
	{name: "overrun CQ and groups", run: overrunInGroup},
	{name: "overrun while a queue pair begins", run: overrunWhileBegun, rounds: 20},
}

// overrunnable makes a small CQ, and queue pairs that receive to it, with room for more.
func (s *station) overrunnable(n int) (*verbs.CQ, []*verbs.QP) {
	s.Helper()
	cq := s.newCQ(4)
	capacity := defaultCap()
	capacity.MaxRecvWR = uint32(cq.Capacity()) + 2
	var qps []*verbs.QP
	for range n {
		qp := s.newQPWith(verbs.QPInitAttr{SendCQ: s.cq, RecvCQ: cq, Cap: capacity})
		check(s, qp.Activate(testQKey))
		qps = append(qps, qp)
	}
	return cq, qps
}

// overrun sends b's queue pair so many messages more than its CQ holds.
func (w *world) overrun(qp *verbs.QP, cq *verbs.CQ, more int) {
	w.a.Helper()
	ah := w.a.ah(w.b.end.IPv4)
	for i := range cq.Capacity() + more {
		w.b.receiveOn(qp, i)
		w.a.post(w.a.send(uint64(i), ah, qp))
		w.a.expect(ok(uint64(i)))
	}
	check(w.a, ah.Close())
}

// A CQ that is overrun fails, with its queue pairs: no loss goes unnoticed.
func cqOverrun(t *testing.T, w *world) {
	a, b := w.a, w.b
	small, qps := b.overrunnable(1)
	w.overrun(qps[0], small, 2)
	w.settle()
	var all []outcome
	for i := range small.Capacity() {
		all = append(all, ok(uint64(i)))
	}
	same(t, b.waitOn(small, len(all)), all...)
	var wcs [4]verbs.WC
	_, err := small.Poll(wcs[:])
	refused(t, err, unix.EOVERFLOW, fmt.Sprintf("%d completions", small.Capacity()), "poll CQ: ", "make one as large")
	_, err = small.Wait(guard(t), wcs[:])
	refused(t, err, unix.EOVERFLOW, "wait for CQ: ")
	_, err = small.Peek(1)
	refused(t, err, unix.EOVERFLOW, "peek CQ: ")
	if state := stateOf(t, qps[0]); state != verbs.QPStateErr {
		t.Errorf("state %v", state)
	}
	b.expectDrops(map[string]uint64{"cq_full": 1, "qp_state": 1})
	// Others are not touched.
	b.receive(0)
	a.post(a.send(1, a.ah(b.end.IPv4), b.qp))
	b.expect(ok(0))
}

// An overrun is an event of the CQ, and of each of its queue pairs that it moved to
// ERR; of none that were there before, and of no other CQ's.
func overrunEvents(t *testing.T, w *world) {
	cq, qps := w.b.overrunnable(3)
	to(t, qps[1], verbs.QPStateErr)
	w.overrun(qps[0], cq, 1)
	w.b.expectEvents(cqErr(cq), qpFatal(qps[0]), qpFatal(qps[2]))
	w.b.noEvent()
	for i, qp := range append(qps, w.b.qp) {
		if state := stateOf(t, qp); (state == verbs.QPStateErr) != (i < 3) {
			t.Errorf("queue pair %d is in %v", i, state)
		}
	}
}

// Nothing would complete to it, and no event would come: no queue pair can be made on it, or begin again.
func overrunTakesNone(t *testing.T, w *world) {
	b := w.b
	cq, qps := b.overrunnable(3)
	to(t, qps[1], verbs.QPStateReset)
	w.overrun(qps[0], cq, 1)
	b.expectEvents(cqErr(cq), qpFatal(qps[0]), qpFatal(qps[2]))
	for _, init := range []verbs.QPInitAttr{{SendCQ: cq, RecvCQ: b.cq}, {SendCQ: b.cq, RecvCQ: cq}} {
		init.Type, init.Cap = verbs.QPTypeUD, defaultCap()
		_, err := b.pd.CreateQP(&init)
		refused(t, err, verbs.ErrCQOverrun, "create QP", "make another CQ")
	}
	to(t, qps[0], verbs.QPStateReset)
	for _, qp := range qps[:2] {
		refused(t, qp.Activate(testQKey), unix.EOVERFLOW, "modify QP", "make another CQ")
		to(t, qp, verbs.QPStateReset)
		if state := stateOf(t, qp); state != verbs.QPStateReset {
			t.Errorf("state %v", state)
		}
		check(t, qp.Close())
	}
	check(t, qps[2].Close())
	check(t, cq.Close())
}

// A queue pair that is attached and cannot leave RESET can be detached, so it can be destroyed.
func overrunInGroup(t *testing.T, w *world) {
	cq, qps := w.b.overrunnable(1)
	qp, mgid := qps[0], gid(groupV4)
	check(t, qp.AttachMcast(mgid, 0))
	w.overrun(qp, cq, 1)
	w.b.expectEvents(cqErr(cq), qpFatal(qp))
	to(t, qp, verbs.QPStateReset)
	refused(t, qp.Close(), unix.EBUSY)
	refused(t, qp.AttachMcast(gid(otherGroup), 0), verbs.ErrState)
	check(t, qp.DetachMcast(mgid, 0))
	check(t, qp.Close())
	check(t, cq.Close())
}

// While a CQ is overrun, others begin on it: each is refused, or fails with the CQ.
func overrunWhileBegun(t *testing.T, w *world) {
	cq := w.b.newCQ(4)
	flood := w.b.flushing(cq, 64)
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
			check(t, begun[0].Close())
			begun = begun[1:]
		}
		same(t, completions(t, w.b.cq)) // runs a card that has no worker
		var qp *verbs.QP
		if qp, refusal = w.b.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq}); refusal == nil {
			begun = append(begun, qp)
			refusal = qp.Activate(testQKey)
		}
	}
	check(t, <-done)
	if verbs.KindOf(refusal) != verbs.ErrCQOverrun && verbs.KindOf(refusal) != verbs.ErrState {
		t.Error(refusal)
	}
	for _, qp := range begun {
		if state := stateOf(t, qp); state != verbs.QPStateErr && state != verbs.QPStateReset {
			t.Errorf("a queue pair on an overrun CQ is in %v", state)
		}
		check(t, qp.Close())
	}
	check(t, flood.Close())
	check(t, cq.Close())
}
