package verbstest

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var srqTests = []test{
	{name: "SRQ", run: sharedReceives},
	{name: "SRQ slots", run: srqSlots},
	{name: "SRQ of another PD", run: srqOfAnotherPD},
	{name: "SRQ keeps receives", run: srqKeepsReceives},
	{name: "SRQ in a group", run: srqInAGroup},
	{name: "SRQ and posts by state", run: srqPostByState},
	{name: "SRQ refuses", run: srqRefuses},
	{name: "SRQ in use", run: srqInUse},
}

// newSRQ makes an SRQ for exactly so many receives.
func (s *station) newSRQ(receives uint32) *verbs.SRQ {
	s.Helper()
	attr := verbs.SRQInitAttr{MaxWR: receives, MaxSGE: 4}
	q, err := s.pd.CreateSRQ(&attr)
	check(s, err)
	if attr.MaxWR != receives || attr.MaxSGE < 4 {
		s.Fatalf("granted %+v", attr)
	}
	return q
}

// sharer is a queue pair in RTS that takes its receives from an SRQ.
func (s *station) sharer(q *verbs.SRQ, cq *verbs.CQ) *verbs.QP {
	s.Helper()
	qp := s.newQPWith(verbs.QPInitAttr{SendCQ: s.cq, RecvCQ: cq, SRQ: q, Cap: defaultCap()})
	check(s, qp.Activate(testQKey))
	return qp
}

// give posts receives of whole slots, numbered as the slots are.
func (s *station) give(q *verbs.SRQ, slots ...int) {
	s.Helper()
	for _, i := range slots {
		check(s, q.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{s.piece(i, slotLen)}}}))
	}
}

// tell sends a message from a to each of these queue pairs of b, in this order.
func (w *world) tell(qps ...*verbs.QP) {
	w.a.Helper()
	ah := w.a.ah(w.b.end.IPv4)
	for i, qp := range qps {
		w.a.post(w.a.send(uint64(i), ah, qp))
		w.a.expect(ok(uint64(i)))
	}
	check(w.a, ah.Close())
	w.settle()
}

// Receives go to the queue pairs in the order of the messages, each to one; completions are in the
// CQ of the one that took it.
func sharedReceives(t *testing.T, w *world) {
	b := w.b
	q, other := b.newSRQ(depth), b.newCQ(16)
	first, second, third := b.sharer(q, b.cq), b.sharer(q, other), b.sharer(q, b.cq)
	b.give(q, 0, 1, 2, 3)
	w.tell(first, second, third, second, first) // there is none for the last
	for i, wc := range b.expect(ok(0), ok(2)) {
		if want := []*verbs.QP{first, third}[i].Number(); wc.QPN != want {
			t.Errorf("receive %d went to %v, want %v", wc.ID, wc.QPN, want)
		}
	}
	same(t, b.waitOn(other, 2), ok(1), ok(3))
	b.expectDrops(map[string]uint64{"no_receive": 1})
	_, init, err := first.Query()
	check(t, err)
	if init.SRQ != q || init.Cap.MaxRecvWR != 0 || init.Cap.MaxRecvSGE != 0 {
		t.Errorf("initial attributes %+v", init)
	}
	w.nothingElse()
}

// A slot is free when the card has taken its receive, polled or not; a list says which did not fit.
func srqSlots(t *testing.T, w *world) {
	b := w.b
	q, cq := b.newSRQ(4), b.newCQ(64)
	qp := b.sharer(q, cq)
	var list []verbs.RecvWR
	for i := range 6 {
		list = append(list, verbs.RecvWR{ID: uint64(i), SGList: []verbs.SGE{b.piece(i, slotLen)}})
	}
	for round := range 3 {
		err := q.PostRecv(list)
		var bad *verbs.BadWRError
		if refused(t, err, unix.ENOMEM, "SRQ"); !errors.As(err, &bad) || bad.Index != 4 {
			t.Fatalf("round %d: %v", round, err)
		}
		refused(t, q.PostRecv(list[:1]), unix.ENOMEM)
		w.tell(qp, qp, qp, qp)
	}
	for range 3 {
		same(t, b.waitOn(cq, 4), ok(0), ok(1), ok(2), ok(3))
	}
	w.nothingElse()
}

// The memory of a receive is that of the SRQ's PD, not of the queue pair's.
func srqOfAnotherPD(t *testing.T, w *world) {
	b := w.b
	pd, err := b.ctx.AllocPD()
	check(t, err)
	q, err := pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4})
	check(t, err)
	mr, err := pd.AllocMR(slotLen, verbs.AccessLocalWrite)
	check(t, err)
	first, second := b.sharer(q, b.cq), b.sharer(q, b.cq)
	check(t, q.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{mr.SGE(0, slotLen)}}, {ID: 2, SGList: []verbs.SGE{b.piece(0, slotLen)}}, {ID: 3, SGList: []verbs.SGE{mr.SGE(0, slotLen)}}}))
	w.tell(first, first, second)
	b.expect(ok(1), outcome{2, verbs.WCLocProtErr}, ok(3))
	if stateOf(t, first) != verbs.QPStateErr || stateOf(t, second) != verbs.QPStateRTS {
		t.Error("the queue pair that took the bad receive is in ERR, the other is not")
	}
	refused(t, pd.Close(), unix.EBUSY)
	for _, object := range []closer{first, second, q, mr, pd} {
		check(t, object.Close())
	}
}

// ERR, RESET and Close of a queue pair leave the receives to the others.
func srqKeepsReceives(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(depth)
	last := b.sharer(q, b.cq)
	leave := []func(qp *verbs.QP){
		func(qp *verbs.QP) { to(t, qp, verbs.QPStateErr) },
		func(qp *verbs.QP) { to(t, qp, verbs.QPStateReset) },
		func(qp *verbs.QP) { check(t, qp.Close()) },
	}
	for i, leave := range leave {
		b.give(q, i)
		leave(b.sharer(q, b.cq))
	}
	w.nothingElse()
	w.tell(last, last, last)
	b.expect(ok(0), ok(1), ok(2))
	// From RESET a queue pair comes back to the same SRQ.
	to(t, last, verbs.QPStateReset)
	check(t, last.Activate(testQKey))
	b.give(q, 5)
	w.tell(last)
	b.expect(ok(5))
	w.nothingElse()
}

// Members of a group that share an SRQ take a receive each; when none is left, the rest gets nothing.
func srqInAGroup(t *testing.T, w *world) {
	a, b := w.a, w.b
	q := b.newSRQ(depth)
	m := b.join(groupV4)
	members := map[verbs.QPN]bool{}
	for range 3 {
		qp := b.sharer(q, b.cq)
		check(t, qp.AttachMcast(m.MGID(), m.MLID()))
		members[qp.Number()] = true
	}
	b.give(q, 0, 1, 2, 3, 4)
	copy(a.slot(9), "to the group")
	for range 2 {
		a.post(a.toGroup(groupV4, 9, 12))
		a.expect(ok(99))
	}
	took := map[verbs.QPN]int{}
	for i, wc := range b.wait(5) {
		if _, text := b.received(wc); wc.ID != uint64(i) || text != "to the group" || !members[wc.QPN] {
			t.Errorf("%+v: %q", wc, text)
		}
		took[wc.QPN]++
	}
	if len(took) != 3 {
		t.Errorf("receives went to %v", took)
	}
	w.nothingElse()
	b.expectDrops(map[string]uint64{"no_receive": 1})
}

// What can be sent in which state does not depend on where receives come from: nothing before RTS, but
// in ERR that the card set too, where it is flushed.
func srqPostByState(t *testing.T, w *world) {
	b := w.b
	q := b.newSRQ(depth)
	qp := b.newQPWith(verbs.QPInitAttr{SendCQ: b.cq, RecvCQ: b.cq, SRQ: q, Cap: defaultCap()})
	post := func() error { return qp.PostSend([]verbs.SendWR{b.send(7, b.ah(w.a.end.IPv4), w.a.qp)}) }
	refused(t, post(), unix.EINVAL, "RESET")
	toInit(t, qp)
	refused(t, post(), unix.EINVAL, "INIT")
	to(t, qp, verbs.QPStateRTR)
	refused(t, post(), unix.EINVAL, "RTR")
	check(t, q.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{{LKey: 12345, Length: slotLen}}}}))
	w.tell(qp)
	b.expect(outcome{5, verbs.WCLocProtErr})
	check(t, post())
	b.expect(flushed(7))
	to(t, qp, verbs.QPStateReset)
	refused(t, post(), unix.EINVAL, "RESET")
	w.nothingElse()
}

// What cannot be is refused, with what can.
func srqRefuses(t *testing.T, w *world) {
	s := w.b
	device, err := s.ctx.QueryDevice()
	check(t, err)
	create := func(attr verbs.SRQInitAttr) error {
		_, err := s.pd.CreateSRQ(&attr)
		return err
	}
	var none *verbs.SRQ
	_, nothing := s.pd.CreateSRQ(nil)
	q := s.newSRQ(depth)
	qp := s.sharer(q, s.cq)
	foreign := func() error {
		_, err := w.a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: w.a.cq, RecvCQ: w.a.cq, SRQ: q})
		return err
	}
	sges := make([]verbs.SGE, device.MaxSRQSGE+1)
	refusals(t, []refusal{
		{"no receives", create(verbs.SRQInitAttr{}), unix.EINVAL, "max_wr 0"},
		{"too many receives", create(verbs.SRQInitAttr{MaxWR: uint32(device.MaxSRQWR) + 1}), unix.EINVAL, "max_wr"},
		{"too many SGEs", create(verbs.SRQInitAttr{MaxWR: 1, MaxSGE: uint32(device.MaxSRQSGE) + 1}), unix.EINVAL, "max_sge"},
		{"no attributes", nothing, unix.EINVAL, "nil"},
		{"another device's", foreign(), unix.EINVAL, "another context"},
		{"post to the queue pair", qp.PostRecv([]verbs.RecvWR{{}}), unix.EINVAL, "SRQ"},
		{"SGEs of a receive", q.PostRecv([]verbs.RecvWR{{SGList: sges}}), unix.EINVAL, "max_sge"},
		{"nil post", none.PostRecv([]verbs.RecvWR{{}}), unix.EINVAL, "nil"},
		{"nil modify", none.Modify(&verbs.SRQAttr{}, 0), unix.EINVAL, "nil"},
		{"modify to nil", q.Modify(nil, 0), unix.EINVAL, "nil"},
		{"nil close", none.Close(), unix.EINVAL, "nil"},
	})
	// With an SRQ, what is said of receives does not count.
	_, err = s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq, SRQ: q, Cap: verbs.QPCap{MaxRecvWR: 1 << 31, MaxRecvSGE: 1 << 31}})
	check(t, err)
}

// An SRQ cannot be closed while queue pairs use it, in whatever state they are.
func srqInUse(t *testing.T, w *world) {
	s := w.a
	q := s.newSRQ(1)
	first, second := s.sharer(q, s.cq), s.sharer(q, s.cq)
	refused(t, q.Close(), unix.EBUSY, "2 queue pairs")
	to(t, first, verbs.QPStateReset)
	check(t, second.Close())
	refused(t, q.Close(), unix.EBUSY, "1 queue pairs")
	check(t, q.PostRecv([]verbs.RecvWR{{}}))
	check(t, first.Close())
	check(t, q.Close())
	refused(t, q.Close(), unix.EINVAL, "closed already")
	refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.EINVAL, "closed already")
	_, err := q.Query()
	refused(t, err, unix.EINVAL)
	_, err = s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq, SRQ: q})
	refused(t, err, unix.EINVAL, "SRQ")
}
