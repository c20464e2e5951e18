// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var srqTests = []rig.Test{
	{Name: "SRQ", Run: sharedReceives},
	{Name: "SRQ slots", Run: srqSlots},
	{Name: "SRQ of another PD", Run: srqOfAnotherPD},
	{Name: "SRQ keeps receives", Run: srqKeepsReceives},
	{Name: "SRQ in a group", Run: srqInAGroup},
	{Name: "SRQ and posts by state", Run: srqPostByState},
	{Name: "SRQ refuses", Run: srqRefuses},
	{Name: "SRQ in use", Run: srqInUse},
}

// sharedReceives checks that messages consume receives in order, and that each completion is in the CQ of the queue
// pair that received the message.
func sharedReceives(t *testing.T, w *rig.World) {
	b := w.B
	q, other := b.NewSRQ(rig.Depth), b.NewCQ(16)
	first, second, third := b.Sharer(q, b.CQ), b.Sharer(q, other), b.Sharer(q, b.CQ)
	b.Give(q, 0, 1, 2, 3)
	w.Tell(first, second, third, second, first) // no receive is left for the last one
	for i, wc := range b.Expect(rig.OK(0), rig.OK(2)) {
		if want := []*verbs.QP{first, third}[i].Number(); wc.QPN != want {
			t.Errorf("receive %d was consumed by %v, want %v", wc.ID, wc.QPN, want)
		}
	}
	rig.Same(t, b.WaitOn(other, 2), rig.OK(1), rig.OK(3))
	b.ExpectDrops(map[string]uint64{"no_receive": 1})
	_, init, err := first.Query()
	rig.Check(t, err)
	if init.SRQ != q || init.Cap.MaxRecvWR != 0 || init.Cap.MaxRecvSGE != 0 {
		t.Errorf("initial attributes %+v", init)
	}
	w.NothingElse()
}

// srqSlots checks that a slot is free when the card has dequeued its receive, even if the completion is not polled, and
// that the error of a list identifies the first request without a slot.
func srqSlots(t *testing.T, w *rig.World) {
	b := w.B
	q, cq := b.NewSRQ(4), b.NewCQ(64)
	qp := b.Sharer(q, cq)
	var list []verbs.RecvWR
	for i := range 6 {
		list = append(list, verbs.RecvWR{ID: uint64(i), SGList: []verbs.SGE{b.Piece(i, rig.SlotLen)}})
	}
	for round := range 3 {
		err := q.PostRecv(list)
		var bad *verbs.BadWRError
		if rig.Refused(t, err, unix.ENOMEM, "SRQ"); !errors.As(err, &bad) || bad.Index != 4 {
			t.Fatalf("round %d: %v", round, err)
		}
		rig.Refused(t, q.PostRecv(list[:1]), unix.ENOMEM)
		w.Tell(qp, qp, qp, qp)
	}
	for range 3 {
		rig.Same(t, b.WaitOn(cq, 4), rig.OK(0), rig.OK(1), rig.OK(2), rig.OK(3))
	}
	w.NothingElse()
}

// srqOfAnotherPD checks that receives use memory of the SRQ's PD, not of the queue pair's.
func srqOfAnotherPD(t *testing.T, w *rig.World) {
	b := w.B
	pd, err := b.Ctx.AllocPD()
	rig.Check(t, err)
	q, err := pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4})
	rig.Check(t, err)
	mr, err := pd.AllocMR(rig.SlotLen, verbs.AccessLocalWrite)
	rig.Check(t, err)
	first, second := b.Sharer(q, b.CQ), b.Sharer(q, b.CQ)
	rig.Check(t, q.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{mr.SGE(0, rig.SlotLen)}}, {ID: 2, SGList: []verbs.SGE{b.Piece(0, rig.SlotLen)}}, {ID: 3, SGList: []verbs.SGE{mr.SGE(0, rig.SlotLen)}}}))
	w.Tell(first, first, second)
	b.Expect(rig.OK(1), rig.Ended(2, verbs.WCLocProtErr), rig.OK(3))
	if rig.StateOf(t, first) != verbs.QPStateErr || rig.StateOf(t, second) != verbs.QPStateRTS {
		t.Error("want ERR only for the queue pair that consumed the invalid receive")
	}
	rig.Refused(t, pd.Close(), unix.EBUSY)
	for _, object := range []rig.Closer{first, second, q, mr, pd} {
		rig.Check(t, object.Close())
	}
}

// srqKeepsReceives checks that ERR, RESET and Close of a queue pair leave the receives to the others.
func srqKeepsReceives(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(rig.Depth)
	last := b.Sharer(q, b.CQ)
	leave := []func(qp *verbs.QP){
		func(qp *verbs.QP) { rig.To(t, qp, verbs.QPStateErr) },
		func(qp *verbs.QP) { rig.To(t, qp, verbs.QPStateReset) },
		func(qp *verbs.QP) { rig.Check(t, qp.Close()) },
	}
	for i, leave := range leave {
		b.Give(q, i)
		leave(b.Sharer(q, b.CQ))
	}
	w.NothingElse()
	w.Tell(last, last, last)
	b.Expect(rig.OK(0), rig.OK(1), rig.OK(2))
	// After RESET a queue pair uses the same SRQ.
	rig.To(t, last, verbs.QPStateReset)
	rig.Check(t, last.Activate(rig.TestQKey))
	b.Give(q, 5)
	w.Tell(last)
	b.Expect(rig.OK(5))
	w.NothingElse()
}

// srqInAGroup checks that members of a group that share an SRQ consume a receive each, and that members without a
// receive drop the message.
func srqInAGroup(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	q := b.NewSRQ(rig.Depth)
	m := b.Join(rig.GroupV4)
	members := map[verbs.QPN]bool{}
	for range 3 {
		qp := b.Sharer(q, b.CQ)
		rig.Check(t, qp.AttachMcast(m.MGID(), m.MLID()))
		members[qp.Number()] = true
	}
	b.Give(q, 0, 1, 2, 3, 4)
	copy(a.Slot(9), "to the group")
	for range 2 {
		a.Post(a.ToGroup(rig.GroupV4, 9, 12))
		a.Expect(rig.OK(99))
	}
	took := map[verbs.QPN]int{}
	for i, wc := range b.Wait(5) {
		if _, text := b.Received(wc); wc.ID != uint64(i) || text != "to the group" || !members[wc.QPN] {
			t.Errorf("%+v: %q", wc, text)
		}
		took[wc.QPN]++
	}
	if len(took) != 3 {
		t.Errorf("the receives were consumed by %v", took)
	}
	w.NothingElse()
	b.ExpectDrops(map[string]uint64{"no_receive": 1})
}

// srqPostByState checks that an SRQ does not change the states in which sends can be posted: from RTS on, and in ERR,
// where they are flushed.
func srqPostByState(t *testing.T, w *rig.World) {
	b := w.B
	q := b.NewSRQ(rig.Depth)
	qp := b.NewQPWith(verbs.QPInitAttr{SendCQ: b.CQ, RecvCQ: b.CQ, SRQ: q, Cap: rig.DefaultCap()})
	post := func() error { return qp.PostSend([]verbs.SendWR{b.Send(7, b.AH(w.A.End.IPv4), w.A.QP)}) }
	rig.Refused(t, post(), unix.EINVAL, "RESET")
	rig.ToInit(t, qp)
	rig.Refused(t, post(), unix.EINVAL, "INIT")
	rig.To(t, qp, verbs.QPStateRTR)
	rig.Refused(t, post(), unix.EINVAL, "RTR")
	rig.Check(t, q.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{{LKey: 12345, Length: rig.SlotLen}}}}))
	w.Tell(qp)
	b.Expect(rig.Ended(5, verbs.WCLocProtErr))
	rig.Check(t, post())
	b.Expect(rig.Flushed(7))
	rig.To(t, qp, verbs.QPStateReset)
	rig.Refused(t, post(), unix.EINVAL, "RESET")
	w.NothingElse()
}

// srqRefuses checks the errors of invalid attributes.
func srqRefuses(t *testing.T, w *rig.World) {
	s := w.B
	device, err := s.Ctx.QueryDevice()
	rig.Check(t, err)
	create := func(attr verbs.SRQInitAttr) error {
		_, err := s.PD.CreateSRQ(&attr)
		return err
	}
	var none *verbs.SRQ
	_, nothing := s.PD.CreateSRQ(nil)
	q := s.NewSRQ(rig.Depth)
	qp := s.Sharer(q, s.CQ)
	foreign := func() error {
		_, err := w.A.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: w.A.CQ, RecvCQ: w.A.CQ, SRQ: q})
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
	// With an SRQ, the attributes of the receive queue are ignored.
	_, err = s.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.CQ, RecvCQ: s.CQ, SRQ: q, Cap: verbs.QPCap{MaxRecvWR: 1 << 31, MaxRecvSGE: 1 << 31}})
	rig.Check(t, err)
}

// srqInUse checks that an SRQ cannot be closed while queue pairs use it, in any state.
func srqInUse(t *testing.T, w *rig.World) {
	s := w.A
	q := s.NewSRQ(1)
	first, second := s.Sharer(q, s.CQ), s.Sharer(q, s.CQ)
	rig.Refused(t, q.Close(), unix.EBUSY, "2 queue pairs")
	rig.To(t, first, verbs.QPStateReset)
	rig.Check(t, second.Close())
	rig.Refused(t, q.Close(), unix.EBUSY, "1 queue pairs")
	rig.Check(t, q.PostRecv([]verbs.RecvWR{{}}))
	rig.Check(t, first.Close())
	rig.Check(t, q.Close())
	rig.Refused(t, q.Close(), unix.EINVAL, "closed already")
	rig.Refused(t, q.PostRecv([]verbs.RecvWR{{}}), unix.EINVAL, "closed already")
	_, err := q.Query()
	rig.Refused(t, err, unix.EINVAL)
	_, err = s.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.CQ, RecvCQ: s.CQ, SRQ: q})
	rig.Refused(t, err, unix.EINVAL, "SRQ")
}
