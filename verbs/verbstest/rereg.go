// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var reregTests = []rig.Test{
	{Name: "rereg MR: memory", Run: reregMemory},
	{Name: "rereg MR: PD", Run: reregPD},
	{Name: "rereg MR: access", Run: reregAccess},
	{Name: "rereg MR: all at once", Run: reregAll},
	{Name: "rereg MR refuses", Run: reregRefuses},
	{Name: "rereg MR under traffic", Run: reregUnderTraffic},
}

// reregMemory checks that requests use the new memory, including waiting ones that were posted before, and that the
// keys do not change.
func reregMemory(t *testing.T, w *rig.World) {
	s := w.A
	if !s.Reaches() {
		rig.Refused(t, s.MR.Rereg(&verbs.ReregAttr{Memory: make([]byte, 1)}, verbs.ReregChangeTranslation), unix.EOPNOTSUPP)
		return
	}
	mr, err := s.PD.AllocMR(16, 0)
	rig.Check(t, err)
	copy(mr.Bytes(), "the old memory")
	key, old := mr.LKey(), mr.SGE(0, 14)
	rig.To(t, s.QP, verbs.QPStateSQD)
	s.Receive(0)
	s.Post(s.Send(1, s.AH(s.End.IPv4), s.QP, old)) // waits in SQD
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{Memory: []byte("the new memory, longer")}, verbs.ReregChangeTranslation))
	rig.To(t, s.QP, verbs.QPStateRTS)
	got := s.Expect(rig.OK(0), rig.OK(1))
	if _, payload := s.Received(got[0]); string(payload) != "the new memory" {
		t.Errorf("a waiting request sent %q", payload)
	}
	if mr.LKey() != key || string(mr.Bytes()) != "the new memory, longer" {
		t.Errorf("key %#x, was %#x; memory %q", mr.LKey(), key, mr.Bytes())
	}
	if text := s.Sends(mr.SGE(16, 6)); text != "longer" {
		t.Errorf("the new end is %q", text)
	}
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{Memory: []byte("short"), IOVA: 4096}, verbs.ReregChangeTranslation))
	s.CannotSend(old)
	if text := s.Sends(verbs.SGE{Addr: 4097, Length: 4, LKey: key}); text != "hort" || mr.IOVA() != 4096 {
		t.Errorf("with an address: %q, base %d", text, mr.IOVA())
	}
	rig.Check(t, mr.Close())
}

// reregPD moves a region to another PD. Requests of the old PD can no longer use it, and the old PD can be closed.
func reregPD(t *testing.T, w *rig.World) {
	s := w.A
	pd, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	mr, err := s.PD.AllocMR(4, 0)
	rig.Check(t, err)
	copy(mr.Bytes(), "here")
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{PD: pd}, verbs.ReregChangePD))
	s.CannotSend(mr.SGE(0, 4))
	rig.Refused(t, pd.Close(), unix.EBUSY, "1 objects")
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{PD: s.PD}, verbs.ReregChangePD))
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{PD: s.PD}, verbs.ReregChangePD)) // no change
	rig.Check(t, pd.Close())
	if text := s.Sends(mr.SGE(0, 4)); text != "here" {
		t.Errorf("sends %q", text)
	}
	rig.Check(t, mr.Close())
}

// reregAccess removes the local write access of a region, and grants it again.
func reregAccess(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	mr, err := b.PD.AllocMR(rig.SlotLen, verbs.AccessLocalWrite)
	rig.Check(t, err)
	receive := func(want verbs.WCStatus) {
		t.Helper()
		rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{mr.SGE(0, rig.SlotLen)}}}))
		a.Post(a.Send(2, ah, b.QP))
		a.Expect(rig.OK(2))
		b.Expect(rig.Ended(1, want))
	}
	receive(verbs.WCSuccess)
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess))
	receive(verbs.WCLocProtErr)
	rig.To(t, b.QP, verbs.QPStateReset)
	rig.Check(t, b.QP.Activate(rig.TestQKey))
	rig.Check(t, mr.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess))
	receive(verbs.WCSuccess)
}

// reregAll changes the memory, the PD and the access in one call.
func reregAll(t *testing.T, w *rig.World) {
	s := w.A
	if !s.Reaches() {
		return
	}
	pd, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	mr, err := pd.AllocMR(4, verbs.AccessLocalWrite)
	rig.Check(t, err)
	attr := verbs.ReregAttr{Memory: []byte("else"), IOVA: 1 << 40, PD: s.PD}
	rig.Check(t, mr.Rereg(&attr, verbs.ReregChangeTranslation|verbs.ReregChangePD|verbs.ReregChangeAccess))
	if text := s.Sends(verbs.SGE{Addr: 1 << 40, Length: 4, LKey: mr.LKey()}); text != "else" {
		t.Errorf("sends %q", text)
	}
	rig.Check(t, pd.Close())
	rig.Check(t, s.QP.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{s.Piece(1, 40), mr.SGE(0, 4)}}}))
	s.Post(s.Send(6, s.AH(s.End.IPv4), s.QP))
	s.Expect(rig.Ended(5, verbs.WCLocProtErr), rig.OK(6)) // the region is no longer writable
	rig.Check(t, mr.Close())
}

// reregRefuses checks that a refused change has no effect on the region.
func reregRefuses(t *testing.T, w *rig.World) {
	s := w.A
	mr, err := s.PD.AllocMRIOVA(4, 16, 0)
	rig.Check(t, err)
	copy(mr.Bytes(), "same")
	closed, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	rig.Check(t, closed.Close())
	other, err := w.B.Ctx.AllocPD()
	rig.Check(t, err)
	var noMR *verbs.MR
	rig.Refused(t, noMR.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), unix.EINVAL, "nil")
	rig.Refused(t, mr.Rereg(nil, verbs.ReregChangeAccess), unix.EINVAL, "nil")
	for name, row := range map[string]struct {
		attr  verbs.ReregAttr
		flags verbs.ReregFlags
	}{
		"nothing":                     {verbs.ReregAttr{}, 0},
		"unknown flag":                {verbs.ReregAttr{}, verbs.ReregChangeAccess | 1<<3},
		"access without its flag":     {verbs.ReregAttr{Access: verbs.AccessLocalWrite, PD: s.PD}, verbs.ReregChangePD},
		"unknown access":              {verbs.ReregAttr{Access: 1 << 31}, verbs.ReregChangeAccess},
		"zero-based at a base":        {verbs.ReregAttr{Access: verbs.AccessZeroBased}, verbs.ReregChangeAccess},
		"no PD":                       {verbs.ReregAttr{}, verbs.ReregChangePD},
		"closed PD":                   {verbs.ReregAttr{PD: closed}, verbs.ReregChangePD},
		"PD of another context":       {verbs.ReregAttr{PD: other}, verbs.ReregChangePD},
		"no memory":                   {verbs.ReregAttr{}, verbs.ReregChangeTranslation},
		"memory that ends over 2^64":  {verbs.ReregAttr{Memory: make([]byte, 4), IOVA: 1<<64 - 2}, verbs.ReregChangeTranslation},
		"good memory, PD that is not": {verbs.ReregAttr{Memory: make([]byte, 4), PD: closed}, verbs.ReregChangeTranslation | verbs.ReregChangePD},
	} {
		err := mr.Rereg(&row.attr, row.flags)
		if !errors.Is(err, unix.EINVAL) && (s.Reaches() || verbs.KindOf(err) != verbs.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := s.Sends(mr.SGE(0, 4)); text != "same" || mr.IOVA() != 16 {
		t.Errorf("sends %q, base %d", text, mr.IOVA())
	}
	rig.Check(t, mr.Close())
	rig.Refused(t, mr.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), verbs.ErrObjectClosed, "MR")
}

// reregUnderTraffic changes the memory of a region while messages are sent from it. Each message must come from one
// memory only.
func reregUnderTraffic(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	if !a.Reaches() {
		return
	}
	memory := [][]byte{bytes.Repeat([]byte("A"), 1000), bytes.Repeat([]byte("B"), 1000)}
	mr, err := a.PD.RegMR(memory[0], 0)
	rig.Check(t, err)
	sge, ah := mr.SGE(0, 1000), a.AH(b.End.IPv4)
	stop := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := mr.Rereg(&verbs.ReregAttr{Memory: memory[i%2], IOVA: 0}, verbs.ReregChangeTranslation); err != nil {
				t.Error(err)
				return
			}
			_ = mr.SGE(0, 1)
		}
	})
	for range rig.Often(500) {
		b.Receive(0)
		a.Post(a.Send(1, ah, b.QP, sge))
		a.Expect(rig.OK(1))
		got := b.Expect(rig.OK(0))
		if _, payload := b.Received(got[0]); payload != string(memory[0]) && payload != string(memory[1]) {
			t.Fatalf("a mixture: %q", payload)
		}
	}
	close(stop)
	changes.Wait()
}
