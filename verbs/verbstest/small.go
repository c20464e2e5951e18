// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/compat"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var smallTests = []rig.Test{
	{Name: "advice about memory", Run: adviseMR},
	{Name: "thread and parent domains", Run: parentDomains},
	{Name: "regions on demand", Run: onDemand},
	{Name: "device memory", Run: deviceMemory},
	{Name: "device memory refuses", Run: deviceMemoryRefuses},
	{Name: "calls without an effect", Run: nothingToDo},
}

// adviseMR checks that advice is accepted for memory that requests can use, and refused for other memory.
func adviseMR(t *testing.T, w *rig.World) {
	s := w.A
	for advice := compat.AdvicePrefetch; advice <= compat.AdvicePrefetchNoFault; advice++ {
		rig.Check(t, compat.AdviseMR(s.PD, advice, compat.AdviceFlush, []verbs.SGE{s.Piece(0, rig.SlotLen), s.Piece(1, 1)}))
	}
	rig.Check(t, compat.AdviseMR(s.PD, compat.AdvicePrefetch, 0, nil))
	bad := s.Piece(0, 1)
	bad.LKey++
	closed, err := s.PD.AllocMR(8, 0)
	rig.Check(t, err)
	rig.Check(t, closed.Close())
	for name, err := range map[string]error{
		"no such advice": compat.AdviseMR(s.PD, 3, 0, nil),
		"no such flag":   compat.AdviseMR(s.PD, 0, 2, nil),
		"no such key":    compat.AdviseMR(s.PD, 0, 0, []verbs.SGE{bad}),
		"closed":         compat.AdviseMR(s.PD, 0, 0, []verbs.SGE{closed.SGE(0, 8)}),
		"too long":       compat.AdviseMR(s.PD, 0, 0, []verbs.SGE{s.MR.SGE(1, rig.Slots*rig.SlotLen)}),
		"no PD":          compat.AdviseMR((*verbs.PD)(nil), 0, 0, nil),
	} {
		t.Run(name, func(t *testing.T) { rig.Refused(t, err, unix.EINVAL) })
	}
}

// parentDomains checks that objects of a parent domain and of its underlying domain can be used together.
func parentDomains(t *testing.T, w *rig.World) {
	a := w.A
	td, err := a.Ctx.AllocTD()
	rig.Check(t, err)
	pd, err := a.Ctx.AllocPD()
	rig.Check(t, err)
	parent, err := pd.AllocParentDomain(td)
	rig.Check(t, err)
	_, err = parent.AllocParentDomain(nil)
	rig.Refused(t, err, unix.EINVAL, "itself")
	foreign, err := w.B.Ctx.AllocTD()
	rig.Check(t, err)
	_, err = pd.AllocParentDomain(foreign)
	rig.Refused(t, err, unix.EINVAL, "another context")
	rig.Refused(t, td.Close(), unix.EBUSY, "1 parent domain")
	rig.Refused(t, pd.Close(), unix.EBUSY, "1 parent domain")

	mr, err := pd.AllocMR(64, verbs.AccessLocalWrite)
	rig.Check(t, err)
	copy(mr.Bytes(), "from the other domain")
	qp, err := parent.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: a.CQ, RecvCQ: a.CQ, Cap: rig.DefaultCap()})
	rig.Check(t, err)
	rig.Check(t, qp.Activate(rig.TestQKey))
	ah, err := parent.CreateAH(rig.Guard(t), a.Route(w.B.End.IPv4))
	rig.Check(t, err)
	w.B.Receive(0)
	rig.Check(t, qp.PostSend([]verbs.SendWR{a.Send(1, ah, w.B.QP, mr.SGE(0, 21))}))
	a.Expect(rig.OK(1))
	if _, got := w.B.Received(w.B.Expect(rig.OK(0))[0]); got != "from the other domain" {
		t.Errorf("%q", got)
	}
	rig.Check(t, errors.Join(qp.Close(), ah.Close(), parent.Close()))
	rig.Refused(t, parent.Close(), verbs.ErrObjectClosed)
	rig.Refused(t, pd.Close(), unix.EBUSY) // mr still uses it
	rig.Check(t, errors.Join(mr.Close(), pd.Close(), td.Close()))
	rig.Refused(t, td.Close(), verbs.ErrObjectClosed)
	_, err = pd.AllocParentDomain(nil)
	rig.Refused(t, err, verbs.ErrObjectClosed)
}

// onDemand checks the on-demand paging capabilities, and that a region with AccessOnDemand works like others.
func onDemand(t *testing.T, w *rig.World) {
	caps := compat.QueryODPCaps(w.A.Ctx)
	if caps.General != compat.ODPSupport || caps.UD != compat.ODPSend|compat.ODPRecv|compat.ODPSRQRecv || caps.RC&compat.ODPAtomic == 0 || caps.UC&compat.ODPRead != 0 {
		t.Errorf("%+v", caps)
	}
	mr, err := w.A.PD.AllocMR(64, verbs.AccessLocalWrite|verbs.AccessOnDemand)
	rig.Check(t, err)
	w.B.Receive(0)
	w.A.Post(w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP, mr.SGE(0, 64)))
	w.A.Expect(rig.OK(1))
	w.B.Expect(rig.OK(0))
}

// nothingToDo checks calls for fork support, data order and optional counters, which have no effect.
func nothingToDo(t *testing.T, w *rig.World) {
	rig.Check(t, compat.ForkInit())
	if status := compat.IsForkInitialized(); status != compat.ForkUnneeded {
		t.Errorf("fork status %d", status)
	}
	if bits := compat.QueryDataInOrder(w.A.QP, verbs.WRSend); bits != 0 {
		t.Errorf("data in order: %#x", bits)
	}
	if !w.A.HasCounters() {
		return
	}
	stats, err := kernel.AllocHWStats(w.A.Ctx, nil, 0)
	rig.Check(t, err)
	rig.Check(t, stats.Modify(0, true))
	rig.Refused(t, stats.Modify(0, false), unix.EOPNOTSUPP)
	rig.Refused(t, stats.Modify(len(stats.Names()), true), unix.EINVAL)
	rig.Refused(t, stats.Modify(-1, true), unix.EINVAL)
}

// deviceMemory checks that device memory can be accessed by copies, and by sends and receives with regions of its
// parts.
func deviceMemory(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	dm, err := a.Ctx.AllocDM(4096)
	rig.Check(t, err)
	zeros, got := make([]byte, 4096), make([]byte, 4096)
	rig.Check(t, dm.CopyFrom(0, got))
	if !bytes.Equal(got, zeros) {
		t.Error("not zeroed")
	}
	rig.Check(t, dm.CopyTo(1000, []byte("from the device")))
	mr, err := a.PD.RegDMMR(dm, 1000, 100, verbs.AccessLocalWrite|verbs.AccessZeroBased)
	rig.Check(t, err)
	if len(mr.Bytes()) != 100 || string(mr.Bytes()[:15]) != "from the device" || mr.IOVA() != 0 {
		t.Errorf("%d bytes, %q", len(mr.Bytes()), mr.Bytes()[:15])
	}
	b.Receive(0)
	a.Post(a.Send(1, a.AH(b.End.IPv4), b.QP, mr.SGE(0, 15)))
	a.Expect(rig.OK(1))
	if _, got := b.Received(b.Expect(rig.OK(0))[0]); got != "from the device" {
		t.Errorf("%q", got)
	}
	rig.Check(t, a.QP.PostRecv([]verbs.RecvWR{{ID: 2, SGList: []verbs.SGE{mr.SGE(20, 60)}}}))
	copy(b.Slot(1), "to the device")
	b.Post(b.Send(3, b.AH(a.End.IPv4), a.QP, b.Piece(1, 13)))
	b.Expect(rig.OK(3))
	a.Expect(rig.OK(2))
	rig.Check(t, dm.CopyFrom(1000+20+40, got[:13])) // after the GRH
	if string(got[:13]) != "to the device" {
		t.Errorf("%q", got[:13])
	}
	a.Post(a.Send(4, a.AH(b.End.IPv4), b.QP, mr.SGE(90, 11))) // beyond the region, but inside the device memory
	a.Expect(rig.Ended(4, verbs.WCLocProtErr))
	rig.Refused(t, dm.Close(), unix.EBUSY, "1")
	rig.Check(t, errors.Join(mr.Close(), dm.Close()))
}

// deviceMemoryRefuses checks that memory beyond the end cannot be copied or registered, and that a session has at most
// MaxDMSize bytes.
func deviceMemoryRefuses(t *testing.T, w *rig.World) {
	a := w.A
	dm, err := a.Ctx.AllocDM(64)
	rig.Check(t, err)
	foreign, err := w.B.Ctx.AllocDM(64)
	rig.Check(t, err)
	one := make([]byte, 1)
	reg := func(dm *verbs.DM, offset, length int, access verbs.AccessFlags) error {
		_, err := a.PD.RegDMMR(dm, offset, length, access)
		return err
	}
	alloc := func(length int) error { _, err := a.Ctx.AllocDM(length); return err }
	mr, err := a.PD.RegDMMR(dm, 0, 64, 0)
	rig.Check(t, err)
	refusals(t, []refusal{
		{"no bytes", alloc(0), unix.EINVAL, "1 to"},
		{"too many", alloc(ib.MaxDMSize + 1), unix.EINVAL, "1 to"},
		{"too many with the others", alloc(ib.MaxDMSize), unix.ENOMEM, "64 of"},
		{"copy behind the end", dm.CopyTo(64, one), unix.EINVAL, "64"},
		{"copy before the beginning", dm.CopyFrom(-1, one), unix.EINVAL, ""},
		{"region behind the end", reg(dm, 1, 64, 0), unix.EINVAL, ""},
		{"negative region", reg(dm, 0, -1, 0), unix.EINVAL, ""},
		{"access", reg(dm, 0, 1, verbs.AccessFlushGlobal), unix.EOPNOTSUPP, ""},
		{"another context's", reg(foreign, 0, 1, 0), unix.EINVAL, "another context"},
		{"nil", reg(nil, 0, 1, 0), unix.EINVAL, "nil"},
	})
	pd, err := a.Ctx.AllocPD()
	rig.Check(t, err)
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{PD: pd, Access: verbs.AccessLocalWrite}, verbs.ReregChangePD|verbs.ReregChangeAccess))
	rig.Check(t, errors.Join(mr.Close(), pd.Close(), dm.Close()))
	rig.Refused(t, dm.CopyTo(0, one), verbs.ErrObjectClosed)
	rig.Refused(t, reg(dm, 0, 1, 0), verbs.ErrObjectClosed)
	rig.Refused(t, dm.Close(), verbs.ErrObjectClosed)
	whole, err := a.Ctx.AllocDM(ib.MaxDMSize) // the 64 bytes are free again
	rig.Check(t, err)
	rig.Check(t, whole.Close())
}
