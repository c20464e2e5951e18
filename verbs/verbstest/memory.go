// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"bytes"
	"math"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var memoryTests = []rig.Test{
	{Name: "empty region", Run: emptyRegion},
	{Name: "send protection", Run: sendProtection},
	{Name: "receive protection", Run: receiveProtection},
	{Name: "registered memory", Run: registeredMemory},
	{Name: "close MR while referred to", Run: closeMRWhileReferredTo},
	{Name: "empty SGE", Run: emptySGE},
	{Name: "large region", Run: largeRegion},
}

// invalidSGEs returns SGEs that a request must not use. The card detects the error when it executes the request, which
// completes with a local protection error.
func invalidSGEs(s *rig.Station) map[string]verbs.SGE {
	s.Helper()
	otherPD, err := s.Ctx.AllocPD()
	rig.Check(s, err)
	foreign, err := otherPD.AllocMR(rig.SlotLen, verbs.AccessLocalWrite)
	rig.Check(s, err)
	gone, err := s.PD.AllocMR(rig.SlotLen, verbs.AccessLocalWrite)
	rig.Check(s, err)
	rig.Check(s, gone.Close())
	next, err := s.PD.AllocMR(rig.SlotLen, verbs.AccessLocalWrite) // uses the table entry of the closed region
	rig.Check(s, err)
	if next.LKey() == gone.LKey() {
		s.Error("a new region has the key of the region that was closed before it")
	}
	end := uint64(len(s.MR.Bytes()))
	return map[string]verbs.SGE{
		"no such key":              {Length: 100, LKey: 0xFFFFFFFF},
		"key 0":                    {Length: 100},
		"region of another PD":     foreign.SGE(0, 100),
		"region that is closed":    gone.SGE(0, 100),
		"one byte too far":         {Addr: end - 99, Length: 100, LKey: s.MR.LKey()},
		"beyond the end":           {Addr: end + 1, Length: 100, LKey: s.MR.LKey()},
		"address wraps":            {Addr: math.MaxUint64 - 50, Length: 100, LKey: s.MR.LKey()},
		"length of 4 GiB":          {Addr: 1, Length: math.MaxUint32, LKey: s.MR.LKey()},
		"SGE of a negative offset": s.MR.SGE(-1, 100),
		"SGE of a negative length": s.MR.SGE(0, -1),
	}
}

func sendProtection(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	b.Receive(0)
	for name, sge := range invalidSGEs(a) {
		t.Run(name, func(t *testing.T) {
			a.Post(a.Send(1, ah, b.QP, a.Piece(0, 10), sge))
			got := a.Expect(rig.Ended(1, verbs.WCLocProtErr))
			if err := got[0].Err(); err == nil {
				t.Error("no error")
			}
			rig.To(t, a.QP, verbs.QPStateRTS)
		})
	}
	w.NothingElse() // nothing was sent
}

func receiveProtection(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	readOnly, err := b.PD.AllocMR(rig.SlotLen, 0)
	rig.Check(t, err)
	rows := invalidSGEs(b)
	rows["read only"] = readOnly.SGE(0, rig.SlotLen)
	for name, sge := range rows {
		t.Run(name, func(t *testing.T) {
			rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{b.Piece(0, 40), sge}}}))
			b.Receive(6)
			a.Post(a.Send(1, ah, b.QP, a.Piece(0, 10)))
			a.Expect(rig.OK(1))
			b.Expect(rig.Ended(5, verbs.WCLocProtErr), rig.Flushed(6))
			if got := rig.StateOf(t, b.QP); got != verbs.QPStateErr {
				t.Errorf("state %v", got)
			}
			rig.To(t, b.QP, verbs.QPStateReset)
			rig.Check(t, b.QP.Activate(rig.TestQKey))
		})
	}
	b.ExpectDrops(map[string]uint64{"protection": uint64(len(rows))})
}

// registeredMemory checks that sending requires no write access, and that the caller's own memory can be registered if
// the card can access it.
func registeredMemory(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	own := bytes.Repeat([]byte("abc"), 100)
	mr, err := a.PD.RegMR(own, 0)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		mr, err = a.PD.AllocMR(len(own), 0)
		rig.Check(t, err)
		copy(mr.Bytes(), own)
	}
	rig.Check(t, err)
	b.Receive(0)
	a.Post(a.Send(1, a.AH(b.End.IPv4), b.QP, mr.SGE(3, 6)))
	got := b.Expect(rig.OK(0))
	if _, payload := b.Received(got[0]); payload != "abcabc" {
		t.Errorf("got %q", payload)
	}
}

// closeMRWhileReferredTo checks that outstanding requests fail if their region is closed, and that its memory is not
// written.
func closeMRWhileReferredTo(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	region, err := b.PD.AllocMR(rig.SlotLen, verbs.AccessLocalWrite)
	rig.Check(t, err)
	rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{region.SGE(0, rig.SlotLen)}}}))
	rig.Check(t, region.Close())
	copy(a.Slot(0), "too late")
	a.Post(a.Send(2, a.AH(b.End.IPv4), b.QP, a.Piece(0, 8)))
	b.Expect(rig.Ended(1, verbs.WCLocProtErr))
	if bytes.Contains(region.Bytes(), []byte("too late")) {
		t.Error("memory was written to")
	}
}

// emptySGE checks that SGEs of length 0 are skipped and need no valid key.
func emptySGE(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	nothing := verbs.SGE{Addr: 77, LKey: 99}
	rig.Check(t, b.QP.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{nothing, b.Piece(0, 20), nothing, b.Piece(1, 100)}}}))
	copy(a.Slot(0), "0123456789")
	a.Post(a.Send(2, a.AH(b.End.IPv4), b.QP, nothing, a.Piece(0, 10), nothing))
	b.Expect(rig.OK(1))
	if string(b.Slot(1)[20:30]) != "0123456789" {
		t.Errorf("got %q", b.Slot(1)[:40])
	}
}

// emptyRegion checks that a region can have length 0, and that messages from it are empty.
func emptyRegion(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	mr, err := a.PD.AllocMR(0, verbs.AccessLocalWrite)
	rig.Check(t, err)
	if len(mr.Bytes()) != 0 {
		t.Errorf("%d bytes", len(mr.Bytes()))
	}
	ah := a.AH(b.End.IPv4)
	b.Receive(0)
	a.Post(a.Send(1, ah, b.QP, mr.SGE(0, 0)))
	a.Expect(rig.OK(1))
	b.Expect(rig.OK(0))
	a.Post(a.Send(2, ah, b.QP, mr.SGE(0, 1)))
	a.Expect(rig.Ended(2, verbs.WCLocProtErr))
	rig.Check(t, mr.Close())
	if none, err := a.PD.RegMR(nil, 0); verbs.KindOf(err) != verbs.ErrUnsupported {
		rig.Check(t, err)
		rig.Check(t, none.Close())
	}
}
