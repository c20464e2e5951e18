package verbstest

import (
	"bytes"
	"math"
	"testing"

	"github.com/roced/roced/verbs"
)

var memoryTests = []test{
	{name: "empty region", run: emptyRegion},
	{name: "send protection", run: sendProtection},
	{name: "receive protection", run: receiveProtection},
	{name: "registered memory", run: registeredMemory},
	{name: "close MR while referred to", run: closeMRWhileReferredTo},
	{name: "empty SGE", run: emptySGE},
}

// strangers are SGEs that a request may not use: what is wrong is found when the card
// comes to them, and completes as a local protection error.
func strangers(s *station) map[string]verbs.SGE {
	s.Helper()
	otherPD, err := s.ctx.AllocPD()
	check(s, err)
	foreign, err := otherPD.AllocMR(slotLen, verbs.AccessLocalWrite)
	check(s, err)
	gone, err := s.pd.AllocMR(slotLen, verbs.AccessLocalWrite)
	check(s, err)
	check(s, gone.Close())
	next, err := s.pd.AllocMR(slotLen, verbs.AccessLocalWrite) // takes the same place
	check(s, err)
	if next.LKey() == gone.LKey() {
		s.Error("a key lived twice in a row")
	}
	end := uint64(len(s.mr.Bytes()))
	return map[string]verbs.SGE{
		"no such key":              {Length: 100, LKey: 0xFFFFFFFF},
		"key 0":                    {Length: 100},
		"region of another PD":     foreign.SGE(0, 100),
		"region that is closed":    gone.SGE(0, 100),
		"one byte too far":         {Addr: end - 99, Length: 100, LKey: s.mr.LKey()},
		"behind the end":           {Addr: end + 1, Length: 100, LKey: s.mr.LKey()},
		"address wraps":            {Addr: math.MaxUint64 - 50, Length: 100, LKey: s.mr.LKey()},
		"length of 4 GiB":          {Addr: 1, Length: math.MaxUint32, LKey: s.mr.LKey()},
		"SGE of a negative offset": s.mr.SGE(-1, 100),
		"SGE of a negative length": s.mr.SGE(0, -1),
	}
}

func sendProtection(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	b.receive(0)
	for name, sge := range strangers(a) {
		t.Run(name, func(t *testing.T) {
			a.post(a.send(1, ah, b.qp, a.piece(0, 10), sge))
			got := a.expect(outcome{1, verbs.WCLocProtErr})
			if err := got[0].Err(); err == nil {
				t.Error("no error")
			}
			to(t, a.qp, verbs.QPStateRTS)
		})
	}
	w.nothingElse() // nothing was sent
}

func receiveProtection(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	readOnly, err := b.pd.AllocMR(slotLen, 0)
	check(t, err)
	rows := strangers(b)
	rows["read only"] = readOnly.SGE(0, slotLen)
	for name, sge := range rows {
		t.Run(name, func(t *testing.T) {
			check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{b.piece(0, 40), sge}}}))
			b.receive(6)
			a.post(a.send(1, ah, b.qp, a.piece(0, 10)))
			a.expect(ok(1))
			b.expect(outcome{5, verbs.WCLocProtErr}, flushed(6))
			if got := stateOf(t, b.qp); got != verbs.QPStateErr {
				t.Errorf("state %v", got)
			}
			to(t, b.qp, verbs.QPStateReset)
			check(t, b.qp.Activate(testQKey))
		})
	}
	b.expectDrops(map[string]uint64{"protection": uint64(len(rows))})
}

// Sending needs no write access, and memory may be the caller's own where the card reaches it.
func registeredMemory(t *testing.T, w *world) {
	a, b := w.a, w.b
	own := bytes.Repeat([]byte("abc"), 100)
	mr, err := a.pd.RegMR(own, 0)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		mr, err = a.pd.AllocMR(len(own), 0)
		check(t, err)
		copy(mr.Bytes(), own)
	}
	check(t, err)
	b.receive(0)
	a.post(a.send(1, a.ah(b.end.IPv4), b.qp, mr.SGE(3, 6)))
	got := b.expect(ok(0))
	if _, payload := b.received(got[0]); payload != "abcabc" {
		t.Errorf("got %q", payload)
	}
}

// Requests that name a region when it is closed fail; its memory is left alone.
func closeMRWhileReferredTo(t *testing.T, w *world) {
	a, b := w.a, w.b
	region, err := b.pd.AllocMR(slotLen, verbs.AccessLocalWrite)
	check(t, err)
	check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{region.SGE(0, slotLen)}}}))
	check(t, region.Close())
	copy(a.slot(0), "too late")
	a.post(a.send(2, a.ah(b.end.IPv4), b.qp, a.piece(0, 8)))
	b.expect(outcome{1, verbs.WCLocProtErr})
	if bytes.Contains(region.Bytes(), []byte("too late")) {
		t.Error("memory was written to")
	}
}

// SGEs of length 0 take no memory, and need none.
func emptySGE(t *testing.T, w *world) {
	a, b := w.a, w.b
	nothing := verbs.SGE{Addr: 77, LKey: 99}
	check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{nothing, b.piece(0, 20), nothing, b.piece(1, 100)}}}))
	copy(a.slot(0), "0123456789")
	a.post(a.send(2, a.ah(b.end.IPv4), b.qp, nothing, a.piece(0, 10), nothing))
	b.expect(ok(1))
	if string(b.slot(1)[20:30]) != "0123456789" {
		t.Errorf("got %q", b.slot(1)[:40])
	}
}

// A region may have no bytes. What is sent from it has none either.
func emptyRegion(t *testing.T, w *world) {
	a, b := w.a, w.b
	mr, err := a.pd.AllocMR(0, verbs.AccessLocalWrite)
	check(t, err)
	if len(mr.Bytes()) != 0 {
		t.Errorf("%d bytes", len(mr.Bytes()))
	}
	ah := a.ah(b.end.IPv4)
	b.receive(0)
	a.post(a.send(1, ah, b.qp, mr.SGE(0, 0)))
	a.expect(ok(1))
	b.expect(ok(0))
	a.post(a.send(2, ah, b.qp, mr.SGE(0, 1)))
	a.expect(outcome{2, verbs.WCLocProtErr})
	check(t, mr.Close())
	if none, err := a.pd.RegMR(nil, 0); verbs.KindOf(err) != verbs.ErrUnsupported {
		check(t, err)
		check(t, none.Close())
	}
}
