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
	refused(t, err, unix.EOVERFLOW, fmt.Sprintf("%d completions", small.Capacity()), "make it as large")
	if _, err := small.Wait(guard(t), wcs[:]); err == nil {
		t.Error("Wait on a CQ that has failed")
	}
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
