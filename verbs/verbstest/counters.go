// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"errors"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var countersTests = []rig.Test{
	{Name: "counters of queue pairs", Run: qpCounters},
	{Name: "counters of completions", Run: cqCounters},
	{Name: "counters refuse", Run: countersRefuse},
}

// counted attaches all counters of a queue pair, at the indices equal to their numbers.
func counted(t *testing.T, s *rig.Station, qp *verbs.QP) *verbs.Counters {
	t.Helper()
	k, err := s.Ctx.CreateCounters()
	rig.Check(t, err)
	for what := verbs.CounterPackets; what <= verbs.CounterSentBytes; what++ {
		rig.Check(t, k.AttachQP(qp, what, int(what)))
	}
	return k
}

func reads(t *testing.T, k *verbs.Counters, want ...uint64) {
	t.Helper()
	got := make([]uint64, len(want))
	rig.Check(t, k.Read(got))
	if !slices.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// Packets of a queue pair are counted by all attached counters from the attachment on. Packets of other queue pairs are
// not counted.
func qpCounters(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	send := func(id uint64, length int) {
		b.Receive(int(id))
		a.Post(a.Send(id, a.AH(b.End.IPv4), b.QP, a.Piece(0, length)))
		a.Expect(rig.OK(id))
		b.Expect(rig.OK(id))
	}
	send(0, 10)
	sender, receiver := counted(t, a, a.QP), counted(t, b, b.QP)
	send(1, 100)
	late := counted(t, b, b.QP)
	send(2, 7)
	other := counted(t, b, b.Active(rig.DefaultCap()))
	reads(t, sender, 0, 0, 2, 107, 0)
	reads(t, receiver, 2, 107, 0, 0)
	reads(t, late, 1, 7)
	reads(t, other, 0, 0, 0, 0)
	rig.Check(t, receiver.Close())
	send(3, 1)
	reads(t, late, 2, 8)
	both := counted(t, b, b.QP)
	rig.Check(t, both.AttachQP(b.QP, verbs.CounterPackets, ib.MaxCounters-1))
	rig.Check(t, both.AttachQP(b.QP, verbs.CounterBytes, ib.MaxCounters-1))
	send(4, 5)
	reads(t, both, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6)
	rig.Check(t, errors.Join(late.Close(), both.Close(), other.Close()))
	p := w.Connect(verbs.QPTypeRC, nil)
	rc, peer := counted(t, a, p.A.QP), counted(t, b, p.B.QP)
	p.A.Post(p.A.Request(verbs.WRRDMAWrite, &p.B, 10_000))
	p.A.Expect(rig.OK(1))
	values := make([]uint64, 4)
	rig.Check(t, rc.Read(values))
	if values[0] < 1 || values[1] != 0 || values[2] < 3 || values[3] < 10_000 { // retransmissions are counted too
		t.Errorf("a write counted %v", values)
	}
	p.Close()
	rig.Check(t, peer.Read(values)) // the values remain readable
	if values[0] < 3 || values[1] < 10_000 || values[2] < 1 {
		t.Errorf("a peer's write counted %v", values)
	}
	rig.Check(t, errors.Join(rc.Close(), peer.Close(), sender.Close()))
}

// Completions of a CQ are counted from the attachment of counters on, whether they are polled or not. Errors are
// counted separately.
func cqCounters(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	k, err := a.Ctx.CreateCounters()
	rig.Check(t, err)
	rig.Check(t, k.AttachCQ(a.CQ, verbs.CounterCompletions, 0))
	rig.Check(t, k.AttachCQ(a.CQ, verbs.CounterErrors, 1))
	good, quiet, bad := a.Send(1, a.AH(b.End.IPv4), b.QP, a.Piece(0, 8)), a.Send(2, a.AH(b.End.IPv4), b.QP), a.Send(3, a.AH(b.End.IPv4), b.QP, a.Piece(0, 8))
	quiet.Flags &^= verbs.SendSignaled
	bad.SGList[0].LKey++
	a.Post(good, quiet, bad, good)
	a.Expect(rig.OK(1), rig.Ended(3, verbs.WCLocProtErr), rig.Ended(1, verbs.WCWRFlushErr))
	reads(t, k, 1, 2)
	rig.Check(t, k.Close())
}

func countersRefuse(t *testing.T, w *rig.World) {
	a := w.A
	k, err := a.Ctx.CreateCounters()
	rig.Check(t, err)
	target := a.NewTarget(a.NewXRCD())
	refusals(t, []refusal{
		{"index", k.AttachQP(a.QP, 0, ib.MaxCounters), unix.EINVAL, "16"},
		{"index below 0", k.AttachQP(a.QP, 0, -1), unix.EINVAL, ""},
		{"description", k.AttachQP(a.QP, verbs.CounterCompletions, 0), unix.EINVAL, "4"},
		{"description of a CQ", k.AttachCQ(a.CQ, verbs.CounterSentBytes, 0), unix.EINVAL, "3"},
		{"no such description", k.AttachCQ(a.CQ, verbs.CounterErrors+1, 0), unix.EINVAL, "6"},
		{"another context's CQ", k.AttachCQ(w.B.CQ, verbs.CounterErrors, 0), unix.EINVAL, "another context"},
		{"no CQ", k.AttachCQ(nil, verbs.CounterErrors, 0), unix.EINVAL, "nil"},
		{"another context's", k.AttachQP(w.B.QP, 0, 0), unix.EINVAL, "another context"},
		{"XRC target", k.AttachQP(target, 0, 0), unix.EOPNOTSUPP, "XRC"},
		{"no QP", k.AttachQP(nil, 0, 0), unix.EINVAL, "nil"},
		{"too many values", k.Read(make([]uint64, ib.MaxCounters+1)), unix.EINVAL, "17"},
	})
	for range 64 {
		rig.Check(t, k.AttachQP(a.QP, 0, 0))
	}
	rig.Refused(t, k.AttachQP(a.QP, 0, 0), unix.ENOMEM, "64")
	rig.Check(t, k.Read(nil))
	rig.Check(t, k.Close())
	rig.Refused(t, k.Close(), verbs.ErrObjectClosed)
	rig.Refused(t, k.Read(nil), verbs.ErrObjectClosed)
	rig.Refused(t, k.AttachQP(a.QP, 0, 0), verbs.ErrObjectClosed)
}
