package verbstest

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var reregTests = []test{
	{name: "rereg MR: memory", run: reregMemory},
	{name: "rereg MR: PD", run: reregPD},
	{name: "rereg MR: access", run: reregAccess},
	{name: "rereg MR: all at once", run: reregAll},
	{name: "rereg MR refuses", run: reregRefuses},
	{name: "rereg MR under traffic", run: reregUnderTraffic},
}

// reaches says whether the card can access memory of the program's own.
func (s *station) reaches() bool {
	s.Helper()
	mr, err := s.pd.RegMR(make([]byte, 1), 0)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		return false
	}
	check(s, err)
	check(s, mr.Close())
	return true
}

// sends has a station send a piece of memory to itself, and gives what arrived.
func (s *station) sends(sge verbs.SGE) string {
	s.Helper()
	ah := s.ah(s.end.IPv4)
	s.receive(0)
	s.post(s.send(1, ah, s.qp, sge))
	got := s.expect(ok(0), ok(1))
	_, payload := s.received(got[0])
	check(s, ah.Close())
	return string(payload)
}

// cannotSend has a station send a piece of memory that it may not send.
func (s *station) cannotSend(sge verbs.SGE) {
	s.Helper()
	ah := s.ah(s.end.IPv4)
	s.post(s.send(1, ah, s.qp, sge))
	s.expect(outcome{1, verbs.WCLocProtErr})
	to(s, s.qp, verbs.QPStateRTS)
	check(s, ah.Close())
}

// New memory is what requests use from then on, those too that were posted before and have not run.
// The keys stay.
func reregMemory(t *testing.T, w *world) {
	s := w.a
	if !s.reaches() {
		refused(t, s.mr.Rereg(&verbs.ReregAttr{Memory: make([]byte, 1)}, verbs.ReregChangeTranslation), unix.EOPNOTSUPP)
		return
	}
	mr, err := s.pd.AllocMR(16, 0)
	check(t, err)
	copy(mr.Bytes(), "the old memory")
	key, old := mr.LKey(), mr.SGE(0, 14)
	to(t, s.qp, verbs.QPStateSQD)
	s.receive(0)
	s.post(s.send(1, s.ah(s.end.IPv4), s.qp, old)) // waits
	check(t, mr.Rereg(&verbs.ReregAttr{Memory: []byte("the new memory, longer")}, verbs.ReregChangeTranslation))
	to(t, s.qp, verbs.QPStateRTS)
	got := s.expect(ok(0), ok(1))
	if _, payload := s.received(got[0]); string(payload) != "the new memory" {
		t.Errorf("a request that waited sends %q", payload)
	}
	if mr.LKey() != key || string(mr.Bytes()) != "the new memory, longer" {
		t.Errorf("key %#x, was %#x; memory %q", mr.LKey(), key, mr.Bytes())
	}
	if text := s.sends(mr.SGE(16, 6)); text != "longer" {
		t.Errorf("the new end is %q", text)
	}
	check(t, mr.Rereg(&verbs.ReregAttr{Memory: []byte("short"), IOVA: 4096}, verbs.ReregChangeTranslation))
	s.cannotSend(old)
	if text := s.sends(verbs.SGE{Addr: 4097, Length: 4, LKey: key}); text != "hort" || mr.IOVA() != 4096 {
		t.Errorf("at an address: %q, from %d on", text, mr.IOVA())
	}
	check(t, mr.Close())
}

// The region moves to another PD: requests of the old one may not use it any more, and only the new
// one is in use by it.
func reregPD(t *testing.T, w *world) {
	s := w.a
	pd, err := s.ctx.AllocPD()
	check(t, err)
	mr, err := s.pd.AllocMR(4, 0)
	check(t, err)
	copy(mr.Bytes(), "here")
	check(t, mr.Rereg(&verbs.ReregAttr{PD: pd}, verbs.ReregChangePD))
	s.cannotSend(mr.SGE(0, 4))
	refused(t, pd.Close(), unix.EBUSY, "1 objects")
	check(t, mr.Rereg(&verbs.ReregAttr{PD: s.pd}, verbs.ReregChangePD))
	check(t, mr.Rereg(&verbs.ReregAttr{PD: s.pd}, verbs.ReregChangePD)) // no change
	check(t, pd.Close())
	if text := s.sends(mr.SGE(0, 4)); text != "here" {
		t.Errorf("sends %q", text)
	}
	check(t, mr.Close())
}

// A region that receives may write to becomes one that they may not, and back.
func reregAccess(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	mr, err := b.pd.AllocMR(slotLen, verbs.AccessLocalWrite)
	check(t, err)
	receive := func(want verbs.WCStatus) {
		t.Helper()
		check(t, b.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{mr.SGE(0, slotLen)}}}))
		a.post(a.send(2, ah, b.qp))
		a.expect(ok(2))
		b.expect(outcome{1, want})
	}
	receive(verbs.WCSuccess)
	check(t, mr.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess))
	receive(verbs.WCLocProtErr)
	to(t, b.qp, verbs.QPStateReset)
	check(t, b.qp.Activate(testQKey))
	check(t, mr.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess))
	receive(verbs.WCSuccess)
}

// All three change in one step.
func reregAll(t *testing.T, w *world) {
	s := w.a
	if !s.reaches() {
		return
	}
	pd, err := s.ctx.AllocPD()
	check(t, err)
	mr, err := pd.AllocMR(4, verbs.AccessLocalWrite)
	check(t, err)
	attr := verbs.ReregAttr{Memory: []byte("else"), IOVA: 1 << 40, PD: s.pd}
	check(t, mr.Rereg(&attr, verbs.ReregChangeTranslation|verbs.ReregChangePD|verbs.ReregChangeAccess))
	if text := s.sends(verbs.SGE{Addr: 1 << 40, Length: 4, LKey: mr.LKey()}); text != "else" {
		t.Errorf("sends %q", text)
	}
	check(t, pd.Close())
	check(t, s.qp.PostRecv([]verbs.RecvWR{{ID: 5, SGList: []verbs.SGE{s.piece(1, 40), mr.SGE(0, 4)}}}))
	s.post(s.send(6, s.ah(s.end.IPv4), s.qp))
	s.expect(outcome{5, verbs.WCLocProtErr}, ok(6)) // not writable any more
	check(t, mr.Close())
}

// What is refused leaves the region as it was.
func reregRefuses(t *testing.T, w *world) {
	s := w.a
	mr, err := s.pd.AllocMRIOVA(4, 16, 0)
	check(t, err)
	copy(mr.Bytes(), "same")
	closed, err := s.ctx.AllocPD()
	check(t, err)
	check(t, closed.Close())
	other, err := w.b.ctx.AllocPD()
	check(t, err)
	var noMR *verbs.MR
	refused(t, noMR.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), unix.EINVAL, "nil")
	refused(t, mr.Rereg(nil, verbs.ReregChangeAccess), unix.EINVAL, "nil")
	for name, row := range map[string]struct {
		attr  verbs.ReregAttr
		flags verbs.ReregFlags
	}{
		"nothing":                     {verbs.ReregAttr{}, 0},
		"unknown flag":                {verbs.ReregAttr{}, verbs.ReregChangeAccess | 1<<3},
		"access without its flag":     {verbs.ReregAttr{Access: verbs.AccessLocalWrite, PD: s.pd}, verbs.ReregChangePD},
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
		if !errors.Is(err, unix.EINVAL) && (s.reaches() || verbs.KindOf(err) != verbs.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text := s.sends(mr.SGE(0, 4)); text != "same" || mr.IOVA() != 16 {
		t.Errorf("sends %q, from %d on", text, mr.IOVA())
	}
	check(t, mr.Close())
	refused(t, mr.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess), verbs.ErrObjectClosed, "MR")
}

// While messages are sent from a region, its memory changes again and again: each message is of the
// old memory or of the new, never of both.
func reregUnderTraffic(t *testing.T, w *world) {
	a, b := w.a, w.b
	if !a.reaches() {
		return
	}
	memory := [][]byte{bytes.Repeat([]byte("A"), 1000), bytes.Repeat([]byte("B"), 1000)}
	mr, err := a.pd.RegMR(memory[0], 0)
	check(t, err)
	sge, ah := mr.SGE(0, 1000), a.ah(b.end.IPv4)
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
	for range 500 {
		b.receive(0)
		a.post(a.send(1, ah, b.qp, sge))
		a.expect(ok(1))
		got := b.expect(ok(0))
		if _, payload := b.received(got[0]); payload != string(memory[0]) && payload != string(memory[1]) {
			t.Fatalf("a mixture: %q", payload)
		}
	}
	close(stop)
	changes.Wait()
}
