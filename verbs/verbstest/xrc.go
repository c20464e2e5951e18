// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var xrcTests = []rig.Test{
	{Name: "XRC messages", Run: xrcMessages},
	{Name: "XRC RDMA", Run: xrcRDMA},
	{Name: "XRC to itself", Run: xrcToItself},
	{Name: "XRC keys are of the SRQ's PD", Run: xrcKeys},
	{Name: "XRC numbers that are none", Run: xrcNumbers},
	{Name: "XRC without a receive", Run: xrcNotReady},
	{Name: "XRC receives that are wrong", Run: xrcBadReceives},
	{Name: "XRC SRQ events", Run: xrcSRQEvents},
	{Name: "XRC SRQ closed", Run: xrcSRQClosed},
	{Name: "XRC CQ overrun", Run: xrcOverrun},
	{Name: "XRC attributes", Run: xrcAttributes},
	{Name: "XRC posts", Run: xrcPosts},
	{Name: "XRC refuses", Run: xrcRefuses},
}

// xrcMessages checks that each message uses a receive of the SRQ in its header. The completion is in that SRQ's CQ,
// with the number of the target.
func xrcMessages(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	first, second := w.B.NewXRCQueue(x.Domain), w.B.NewXRCQueue(x.Domain)
	if first.Number() == second.Number() || first.Number() == 0 {
		t.Fatalf("numbers %v and %v", first.Number(), second.Number())
	}
	for i, length := range lengths {
		want := rig.Pattern(length, byte(i))
		copy(x.A.MR.Bytes(), want)
		for _, q := range []*rig.XRCQueue{first, second, first} {
			clear(q.MR.Bytes())
			q.Recv(uint64(i), 0, rig.RegionLen)
			wr := x.Request(verbs.WRSendWithImm, q, length)
			wr.ImmData = uint32(i) << 8
			x.A.Post(wr)
			wc := q.Expect(rig.OK(uint64(i)))[0]
			if int(wc.ByteLen) != length || wc.Opcode != verbs.WCRecv || wc.QPN != x.Target.Number() || wc.SrcQP != x.A.QP.Number() || wc.ImmData != wr.ImmData {
				t.Errorf("%d bytes: %+v", length, wc)
			}
			if !bytes.Equal(q.MR.Bytes()[:length], want) {
				t.Errorf("the %d received bytes differ from the sent ones", length)
			}
			if sent := x.A.Expect(rig.OK(1)); sent[0].Opcode != verbs.WCSend || sent[0].QPN != x.A.QP.Number() {
				t.Errorf("sent %+v", sent)
			}
		}
	}
	w.NothingElse()
}

// xrcRDMA checks that RDMA operations access memory of the SRQ's PD.
func xrcRDMA(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	for i, q := range []*rig.XRCQueue{w.B.NewXRCQueue(x.Domain), w.B.NewXRCQueue(x.Domain)} {
		want := rig.Pattern(3000, byte(i))
		copy(x.A.MR.Bytes(), want)
		q.Recv(2, 0, 0)
		write, imm := x.Request(verbs.WRRDMAWrite, q, 3000), x.Request(verbs.WRRDMAWriteWithImm, q, 0)
		imm.ImmData = 77
		x.A.Post(write, imm)
		x.A.Expect(rig.OK(1), rig.OK(1))
		if wc := q.Expect(rig.OK(2))[0]; wc.Opcode != verbs.WCRecvRDMAWithImm || wc.ImmData != 77 || wc.QPN != x.Target.Number() {
			t.Errorf("%+v", wc)
		}
		if !bytes.Equal(q.MR.Bytes()[:3000], want) {
			t.Error("WRITE: the bytes differ")
		}
		clear(x.A.MR.Bytes())
		x.A.Post(x.Request(verbs.WRRDMARead, q, 3000))
		x.A.Expect(rig.OK(1))
		if !bytes.Equal(x.A.MR.Bytes()[:3000], want) {
			t.Error("READ: the bytes differ")
		}
		binary.NativeEndian.PutUint64(q.MR.Bytes(), 40)
		add := x.Request(verbs.WRAtomicFetchAndAdd, q, 8)
		add.CompareAdd = 2
		swap := x.Request(verbs.WRAtomicCmpAndSwp, q, 8)
		swap.CompareAdd, swap.Swap = 42, 99
		x.A.Post(add, swap)
		x.A.Expect(rig.OK(1), rig.OK(1))
		if was, is := binary.NativeEndian.Uint64(x.A.MR.Bytes()), binary.NativeEndian.Uint64(q.MR.Bytes()); was != 42 || is != 99 {
			t.Errorf("atomic: previous value %d, new value %d", was, is)
		}
	}
	w.NothingElse()
}

// xrcToItself checks an initiator and a target on one card.
func xrcToItself(t *testing.T, w *rig.World) {
	x := w.A.ConnectXRC(w.A, w.A.NewXRCD(), nil)
	q := w.A.NewXRCQueue(x.Domain)
	copy(x.A.MR.Bytes(), rig.Pattern(1000, 9))
	q.Recv(2, 0, 1000)
	x.A.Post(x.Request(verbs.WRSend, q, 1000))
	q.Expect(rig.OK(2))
	x.A.Expect(rig.OK(1))
	if !bytes.Equal(q.MR.Bytes()[:1000], rig.Pattern(1000, 9)) {
		t.Error("the bytes differ")
	}
}

// xrcKeys checks that a key is valid only for requests to an SRQ of its PD.
func xrcKeys(t *testing.T, w *rig.World) {
	for _, op := range []verbs.Opcode{verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRAtomicFetchAndAdd} {
		x := w.ConnectXRC(nil)
		q, other := w.B.NewXRCQueue(x.Domain), w.B.NewXRCQueue(x.Domain)
		wr := x.Request(op, q, 8)
		wr.RemoteSRQN = other.Number()
		x.A.Post(wr)
		x.A.Expect(rig.Ended(1, verbs.WCRemAccessErr))
		w.B.ExpectEvents(verbs.AsyncEvent{Type: verbs.EventQPAccessErr, QP: x.Target}, lastReached(x.Target))
		if state := rig.StateOf(t, x.Target); state != verbs.QPStateErr {
			t.Errorf("%v: the target is in %v", op, state)
		}
		// After RESET both can be connected again.
		for _, qp := range []*verbs.QP{x.Target, x.A.QP} {
			rig.To(t, qp, verbs.QPStateReset)
		}
		x.Connect(rig.Ahead(1))
		x.A.Post(x.Request(op, q, 8))
		x.A.Expect(rig.OK(1))
	}
}

// xrcNumbers checks that an unknown SRQ number and that of another domain are refused, and that the target changes to
// ERR.
func xrcNumbers(t *testing.T, w *rig.World) {
	other := w.B.NewXRCD()
	foreign, apart := w.B.NewXRCQueue(other), w.B.NewSRQ(4)
	foreign.Recv(5, 0, 100)
	closed := w.B.NewXRCQueue(other)
	rig.Check(t, closed.SRQ.Close())
	for name, number := range map[string]verbs.SRQN{
		"none": 0, "closed": closed.Number(), "of another domain": foreign.Number(), "a handle": apart.Number() + 1, "the largest": 0xFFFFFF,
	} {
		for _, op := range []verbs.Opcode{verbs.WRSend, verbs.WRRDMAWrite, verbs.WRRDMARead, verbs.WRAtomicFetchAndAdd} {
			x := w.ConnectXRC(nil)
			wr := x.Request(op, foreign, 8)
			wr.RemoteSRQN = number
			x.A.Post(wr)
			x.A.Expect(rig.Ended(1, verbs.WCRemInvReqErr))
			w.B.ExpectEvents(verbs.AsyncEvent{Type: verbs.EventQPReqErr, QP: x.Target}, lastReached(x.Target))
			if state := rig.StateOf(t, x.Target); state != verbs.QPStateErr {
				t.Errorf("%s: the target is in %v", name, state)
			}
			rig.Check(t, x.A.QP.Close())
			rig.Check(t, x.Target.Close())
		}
	}
	if got := rig.Completions(t, foreign.CQ); len(got) != 0 || !bytes.Equal(foreign.MR.Bytes(), make([]byte, rig.RegionLen)) {
		t.Errorf("the queue of another domain received %+v", got)
	}
	w.NothingElse()
}

// xrcNotReady checks that a message waits for a receive of its SRQ, even if other SRQs have receives.
func xrcNotReady(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	empty, full := w.B.NewXRCQueue(x.Domain), w.B.NewXRCQueue(x.Domain)
	full.Recv(1, 0, 100)
	x.A.Post(x.Request(verbs.WRSend, empty, 10))
	w.Settle()
	empty.Recv(2, 0, 100)
	empty.Expect(rig.OK(2))
	x.A.Expect(rig.OK(1))
	// The initiator's attributes determine the number of retries.
	attr := verbs.QPAttr{}
	x = w.ConnectXRC(func(a *verbs.QPAttr) { a.RNRRetry = 1; attr = *a })
	empty = w.B.NewXRCQueue(x.Domain)
	x.A.Post(x.Request(verbs.WRSend, empty, 10))
	x.A.Expect(rig.Ended(1, verbs.WCRNRRetryExcErr))
	if state := rig.StateOf(t, x.Target); state != verbs.QPStateRTS || attr.RNRRetry != 1 {
		t.Errorf("the target is in %v", state)
	}
}

// xrcBadReceives checks that an invalid receive completes with an error in the SRQ's CQ, and moves the target to ERR.
func xrcBadReceives(t *testing.T, w *rig.World) {
	for _, row := range []struct {
		recv   func(q *rig.XRCQueue) verbs.SGE
		status verbs.WCStatus // of the receive
		sent   verbs.WCStatus
	}{
		{func(q *rig.XRCQueue) verbs.SGE { return q.MR.SGE(0, 9) }, verbs.WCLocLenErr, verbs.WCRemInvReqErr},
		{func(*rig.XRCQueue) verbs.SGE { return w.B.Piece(0, 100) }, verbs.WCLocProtErr, verbs.WCRemOpErr}, // memory of another PD
	} {
		x := w.ConnectXRC(nil)
		q := w.B.NewXRCQueue(x.Domain)
		rig.Check(t, q.PostRecv([]verbs.RecvWR{{ID: 3, SGList: []verbs.SGE{row.recv(q)}}, {ID: 4, SGList: []verbs.SGE{q.MR.SGE(0, 100)}}}))
		x.A.Post(x.Request(verbs.WRSend, q, 10))
		q.Expect(rig.Ended(3, row.status))
		x.A.Expect(rig.Ended(1, row.sent))
		w.B.ExpectEvents(lastReached(x.Target))
		// Other targets can use the SRQ's other receives.
		y := w.A.ConnectXRC(w.B, x.Domain, nil)
		y.A.Post(y.Request(verbs.WRSend, q, 10))
		if wc := q.Expect(rig.OK(4))[0]; wc.QPN != y.Target.Number() {
			t.Errorf("%+v", wc)
		}
		y.A.Expect(rig.OK(1))
	}
	w.NothingElse()
}

// xrcSRQEvents checks that an SRQ of type XRC supports the limit and resizing.
func xrcSRQEvents(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	q := w.B.NewXRCQueue(x.Domain)
	for id := range uint64(4) {
		q.Recv(id, 0, 100)
	}
	arm(t, q.SRQ, 3)
	rig.Check(t, q.SRQ.Modify(&verbs.SRQAttr{MaxWR: 16}, verbs.SRQMaxWR))
	q.Recv(4, 0, 100)
	for id := range uint64(5) {
		x.A.Post(x.Request(verbs.WRSend, q, 10))
		q.Expect(rig.OK(id))
		x.A.Expect(rig.OK(1))
	}
	w.B.ExpectEvents(limitReached(q.SRQ))
	w.B.NoEvent()
	attr, err := q.SRQ.Query()
	rig.Check(t, err)
	if attr.MaxWR != 16 || attr.Limit != 0 {
		t.Errorf("%+v", attr)
	}
}

// xrcSRQClosed checks that closing an SRQ discards its unpolled completions, and that its CQ and domain can be closed
// afterwards.
func xrcSRQClosed(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	q := w.B.NewXRCQueue(x.Domain)
	rig.Refused(t, q.CQ.Close(), unix.EBUSY)
	rig.Refused(t, q.PD.Close(), unix.EBUSY)
	for id := range uint64(2) {
		q.Recv(id, 0, 100)
	}
	x.A.Post(x.Request(verbs.WRSend, q, 10))
	x.A.Expect(rig.OK(1))
	q.Expect(rig.OK(0))
	x.A.Post(x.Request(verbs.WRSend, q, 10))
	x.A.Expect(rig.OK(1))
	rig.Check(t, q.SRQ.Close())
	if got := rig.Completions(t, q.CQ); len(got) != 0 {
		t.Errorf("completions of a closed SRQ: %+v", got)
	}
	rig.Check(t, q.CQ.Close())
	rig.Refused(t, x.Domain.Close(), unix.EBUSY, "1 SRQs and queue pairs")
	rig.Check(t, x.Target.Close())
	rig.Check(t, x.Domain.Close())
	rig.Refused(t, x.Domain.Close(), unix.EINVAL, "closed already")
}

// xrcOverrun checks that an overrun of an SRQ's CQ fails the target that received the message, and no other one.
func xrcOverrun(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	y := w.A.ConnectXRC(w.B, x.Domain, nil)
	q := w.B.NewXRCQueueOn(x.Domain, w.B.NewCQ(4))
	many := q.CQ.Capacity()
	for id := range many + 1 {
		q.Recv(uint64(id), 0, 100)
		x.A.Post(x.Request(verbs.WRSend, q, 10))
		if id < many {
			x.A.Expect(rig.OK(1))
		}
	}
	x.A.Expect(rig.Ended(1, verbs.WCRemOpErr))
	want := map[verbs.AsyncEvent]bool{cqErr(q.CQ): true, qpFatal(x.Target): true, lastReached(x.Target): true}
	for len(want) > 0 {
		event, err := w.B.Ctx.GetAsyncEvent(rig.Guard(t))
		rig.Check(t, err)
		if !want[event] {
			t.Errorf("event %v %+v", event.Type, event)
		}
		delete(want, event)
	}
	other := w.B.NewXRCQueue(x.Domain)
	other.Recv(7, 0, 100)
	y.A.Post(y.Request(verbs.WRSend, other, 10))
	other.Expect(rig.OK(7))
	y.A.Expect(rig.OK(1))
	_, err := q.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1, Type: verbs.SRQTypeXRC, XRCD: x.Domain, CQ: q.CQ})
	rig.Refused(t, err, unix.EOVERFLOW, "make another CQ")
}

// xrcAttributes checks that Query returns the attributes that were set, and that each type refuses attributes that it
// does not have.
func xrcAttributes(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	ini, init, err := x.A.QP.Query()
	rig.Check(t, err)
	want := w.A.Connection(w.B.End.IPv4, x.Target.Number())
	want.State, want.CurState, want.Cap, want.MaxDestRDAtomic, want.MinRNRTimer = verbs.QPStateRTS, verbs.QPStateRTS, init.Cap, 0, 0
	if ini != want || init.Type != verbs.QPTypeXRCSend || init.Cap.MaxRecvWR != 0 || init.SRQ != nil {
		t.Errorf("initiator %+v, want %+v; made with %+v", ini, want, init)
	}
	target, init, err := x.Target.Query()
	rig.Check(t, err)
	want = w.B.Connection(w.A.End.IPv4, x.A.QP.Number())
	want.State, want.CurState, want.RetryCnt, want.RNRRetry, want.MaxRDAtomic = verbs.QPStateRTS, verbs.QPStateRTS, 0, 0, 0
	if target != want || init.Type != verbs.QPTypeXRCRecv || init.SendCQ != nil || init.Cap != (verbs.QPCap{}) {
		t.Errorf("target %+v, want %+v; made with %+v", target, want, init)
	}
	for _, row := range []struct {
		qp   *verbs.QP
		mask verbs.QPAttrMask
		says string
	}{
		{x.A.QP, verbs.QPAttrMinRNRTimer, "cannot set"},
		{x.A.QP, verbs.QPAttrMaxDestRDAtomic, "cannot set"},
		{x.Target, verbs.QPAttrRetryCnt, "cannot set"},
		{x.Target, verbs.QPAttrQKey, "cannot set"},
	} {
		rig.Refused(t, row.qp.Modify(&verbs.QPAttr{}, row.mask), unix.EINVAL, row.says)
	}
	rig.Refused(t, x.Target.AttachMcast(rig.GID(rig.GroupV4), 0), unix.EINVAL, "XRC_RECV")
	rig.Refused(t, x.A.QP.AttachMcast(rig.GID(rig.GroupV4), 0), unix.EINVAL, "XRC_SEND")
}

// xrcPosts checks that receives cannot be posted to an initiator or a target, nor sends to a target.
func xrcPosts(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	q := w.B.NewXRCQueue(x.Domain)
	rig.Refused(t, x.A.QP.PostRecv([]verbs.RecvWR{{}}), unix.EINVAL, "initiator")
	rig.Refused(t, x.Target.PostRecv([]verbs.RecvWR{{}}), unix.EINVAL, "SRQ")
	rig.Refused(t, x.Target.PostSend([]verbs.SendWR{x.Request(verbs.WRSend, q, 1)}), unix.EINVAL, "target")
	rig.Refused(t, x.Target.Drain(rig.Guard(t)), unix.EINVAL, "target")
	wr := x.Request(verbs.WRSend, q, 1)
	wr.RemoteSRQN = 1 << 24
	rig.Refused(t, x.A.QP.PostSend([]verbs.SendWR{wr}), unix.EINVAL, "24 bits")
	// Inline data, unsignaled requests and a full SGE list work as with RC.
	for id := range uint64(3) {
		q.Recv(id, 1000*int(id), 1000)
	}
	copy(x.A.MR.Bytes(), rig.Pattern(400, 3))
	pieces := []verbs.SGE{x.A.MR.SGE(0, 100), x.A.MR.SGE(100, 100), x.A.MR.SGE(200, 100), x.A.MR.SGE(300, 100)}
	rig.Check(t, x.A.QP.PostSend([]verbs.SendWR{
		{ID: 1, Opcode: verbs.WRSend, RemoteSRQN: q.Number(), Flags: verbs.SendInline, InlineData: rig.Pattern(64, 1)},
		{ID: 2, Opcode: verbs.WRSend, RemoteSRQN: q.Number(), SGList: pieces},
		{ID: 3, Opcode: verbs.WRSend, RemoteSRQN: q.Number(), Flags: verbs.SendInline | verbs.SendSignaled, SGList: pieces[:1], InlineData: nil},
	}[:2]))
	rig.Drained(t, x.A.QP)
	q.Expect(rig.OK(0), rig.OK(1))
	if !bytes.Equal(q.MR.Bytes()[:64], rig.Pattern(64, 1)) || !bytes.Equal(q.MR.Bytes()[1000:1400], rig.Pattern(400, 3)) {
		t.Error("the bytes differ")
	}
	w.NothingElse()
}

// xrcRefuses checks the errors of invalid attributes.
func xrcRefuses(t *testing.T, w *rig.World) {
	s := w.B
	domain, cq := s.NewXRCD(), s.NewCQ(8)
	elsewhere := w.A.NewXRCD()
	good := verbs.SRQInitAttr{MaxWR: 1, Type: verbs.SRQTypeXRC, XRCD: domain, CQ: cq}
	srq := func(change func(a *verbs.SRQInitAttr)) error {
		attr := good
		change(&attr)
		_, err := s.PD.CreateSRQ(&attr)
		return err
	}
	target := func(kind verbs.QPType) error {
		_, err := domain.CreateQP(&verbs.QPInitAttr{Type: kind})
		return err
	}
	open := func(number verbs.QPN) error { _, err := domain.OpenQP(&verbs.QPOpenAttr{Number: number}); return err }
	var none *verbs.XRCD
	_, nothing := s.Ctx.OpenXRCD(nil)
	_, flags := s.Ctx.OpenXRCD(&verbs.XRCDInitAttr{OFlags: 1})
	_, noTarget := none.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv})
	_, noOpen := none.OpenQP(&verbs.QPOpenAttr{Number: 1})
	_, pd := s.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeXRCRecv, SendCQ: cq, RecvCQ: cq})
	refusals(t, []refusal{
		{"no domain", srq(func(a *verbs.SRQInitAttr) { a.XRCD = nil }), unix.EINVAL, "XRCD"},
		{"no CQ", srq(func(a *verbs.SRQInitAttr) { a.CQ = nil }), unix.EINVAL, "CQ"},
		{"another device's domain", srq(func(a *verbs.SRQInitAttr) { a.XRCD = elsewhere }), unix.EINVAL, "another context"},
		{"another device's CQ", srq(func(a *verbs.SRQInitAttr) { a.CQ = w.A.CQ }), unix.EINVAL, "another context"},
		{"tag matching", srq(func(a *verbs.SRQInitAttr) { a.Type = verbs.SRQTypeTM }), unix.EOPNOTSUPP, "tag matching"},
		{"another type", srq(func(a *verbs.SRQInitAttr) { a.Type = 77 }), unix.EINVAL, "77"},
		{"no receives", srq(func(a *verbs.SRQInitAttr) { a.MaxWR = 0 }), unix.EINVAL, "max_wr"},
		{"a target of type RC", target(verbs.QPTypeRC), unix.EINVAL, "XRC_RECV"},
		{"a target of a PD", pd, unix.EINVAL, "XRC domain"},
		{"a queue pair that is not there", open(0x123), unix.EINVAL, "0x000123"},
		{"a queue pair of another type", open(s.QP.Number()), unix.EINVAL, "no target"},
		{"nil attributes", nothing, unix.EINVAL, "nil"},
		{"flags", flags, unix.EINVAL, "O_CREATE"},
		{"nil create", noTarget, unix.EINVAL, "nil"},
		{"nil open", noOpen, unix.EINVAL, "nil"},
		{"nil close", none.Close(), unix.EINVAL, "nil"},
	})
	rig.Check(t, domain.Close()) // fails if a refused call leaked an object
	rig.Check(t, cq.Close())
}
