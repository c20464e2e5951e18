package hca

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
)

// After Close everything says that the device is closed; nothing hangs, nothing panics.
func TestEverythingAfterClose(t *testing.T) {
	w := newWirePair(t)
	everythingAfterClose(t, w.a, w.b, "10.0.0.2")
}

func TestEverythingAfterCloseOnLink(t *testing.T) {
	l := newStations(t)
	everythingAfterClose(t, l.a, l.b, "10.77.0.2")
}

func everythingAfterClose(t *testing.T, s, peer *station, dest string) {
	ah, route := s.ah(dest), s.route(dest)
	check(t, s.ctx.Close())
	check(t, s.ctx.Close())
	check(t, s.device.Close())
	for name, do := range s.makes(t, peer, ah, route) {
		t.Run(name, func(t *testing.T) { refused(t, do(), verbs.ErrClosed) })
	}
	for name, do := range map[string]func() error{
		"AH.Close": ah.Close, "QP.Close": s.qp.Close, "MR.Close": s.mr.Close, "CQ.Close": s.cq.Close, "PD.Close": s.pd.Close,
		"DetachMcast": func() error { return s.qp.DetachMcast(gid(groupV4), 0) },
	} {
		t.Run(name, func(t *testing.T) { refused(t, do(), verbs.ErrClosed) })
	}
	s.device.Wake() // which nobody hears
	if s.device.Progress() {
		t.Error("a closed device makes progress")
	}
}

// makes are all calls that a device which is gone refuses, but those that free.
func (s *station) makes(t *testing.T, peer *station, ah *verbs.AH, route *verbs.AHAttr) map[string]func() error {
	var wcs [1]verbs.WC
	return map[string]func() error{
		"QueryDevice": func() error { _, err := s.ctx.QueryDevice(); return err },
		"QueryPort":   func() error { _, err := s.ctx.QueryPort(1); return err },
		"QueryGID":    func() error { _, err := s.ctx.QueryGID(1, 0); return err },
		"QueryPKey":   func() error { _, err := s.ctx.QueryPKey(1, 0); return err },
		"GIDs":        func() error { _, err := s.ctx.GIDs(1); return err },
		"AllocPD":     func() error { _, err := s.ctx.AllocPD(); return err },
		"CreateCQ":    func() error { _, err := s.ctx.CreateCQ(1); return err },
		"AllocMR":     func() error { _, err := s.pd.AllocMR(1, 0); return err },
		"RegMR":       func() error { _, err := s.pd.RegMR(make([]byte, 1), 0); return err },
		"CreateAH":    func() error { _, err := s.pd.CreateAH(context.Background(), route); return err },
		"CreateQP": func() error {
			_, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
			return err
		},
		"Modify":      func() error { return s.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState) },
		"reset":       func() error { return s.qp.Modify(&verbs.QPAttr{}, verbs.QPAttrState) },
		"Query":       func() error { _, _, err := s.qp.Query(); return err },
		"PostSend":    func() error { return s.qp.PostSend([]verbs.SendWR{s.send(1, ah, peer)}) },
		"PostRecv":    func() error { return s.qp.PostRecv([]verbs.RecvWR{{}}) },
		"Poll":        func() error { _, err := s.cq.Poll(wcs[:]); return err },
		"Wait":        func() error { _, err := s.cq.Wait(guard(t), wcs[:]); return err },
		"AttachMcast": func() error { return s.qp.AttachMcast(gid(groupV4), 0) },
		"full join":   func() error { _, err := s.ctx.JoinMulticast(address(groupV4), verbs.JoinFullMember); return err },
		"send-only join": func() error {
			_, err := s.ctx.JoinMulticast(address(groupV4), verbs.JoinSendOnlyFullMember)
			return err
		},
		"GetAsyncEvent": func() error { _, err := s.ctx.GetAsyncEvent(guard(t)); return err },
	}
}

// Whoever waits when the device is closed is told.
func TestCloseWhileWaiting(t *testing.T) {
	w := newWirePair(t)
	done := make(chan error)
	for range 3 {
		go func() {
			var wcs [1]verbs.WC
			_, err := w.a.cq.Wait(guard(t), wcs[:])
			done <- err
		}()
	}
	eventually(t, "waiting", func() bool { return waiting("verbs.(*CQ).Wait") == 3 })
	check(t, w.a.device.Close())
	for range 3 {
		refused(t, <-done, verbs.ErrClosed)
	}
}

// waiting counts the goroutines that are in a function and in a select.
func waiting(function string) (n int) {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for _, one := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(one, "[select") && strings.Contains(one, function) {
			n++
		}
	}
	return n
}

// Completions that lie in the queue when the device is closed can still be polled.
func TestPollAfterClose(t *testing.T) {
	w := newStillPair(t)
	w.a.post(w.a.send(1, w.a.ah("10.0.0.2"), w.b))
	w.run()
	check(t, w.a.device.Close())
	var wcs [2]verbs.WC
	n, err := w.a.cq.Poll(wcs[:])
	check(t, err)
	expect(t, wcs[:n], ok(1))
}

// Everything at once, from several goroutines, and the device is closed under it: the
// race detector watches, and every error is one that may be.
func TestCloseUnderLoad(t *testing.T) {
	for range 10 {
		w := newWirePair(t)
		closeUnderLoad(t, w.a, w.b, "10.0.0.2")
	}
}

func TestCloseUnderLoadOnLink(t *testing.T) {
	hosts := labtest.Pair(t)
	b := newStation(t, open(t, hosts.B))
	for range 5 {
		closeUnderLoad(t, newStation(t, open(t, hosts.A)), b, "10.77.0.2")
	}
}

func closeUnderLoad(t *testing.T, a, b *station, dest string) {
	t.Helper()
	route, ah := a.route(dest), a.ah(dest)
	var all sync.WaitGroup
	loop := func(do func() error) {
		all.Go(func() {
			for {
				err := do()
				switch {
				case errors.Is(err, verbs.ErrClosed):
					return
				case err != nil && !errors.Is(err, verbs.ErrQueueFull):
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		})
	}
	loop(func() error { return a.qp.PostSend([]verbs.SendWR{a.send(1, ah, b)}) })
	loop(func() error { return a.qp.PostRecv([]verbs.RecvWR{{}}) })
	loop(func() error { var wcs [4]verbs.WC; _, err := a.cq.Poll(wcs[:]); return err })
	loop(func() error { var wcs [4]verbs.WC; _, err := a.cq.Wait(guard(t), wcs[:]); return err })
	loop(func() error { return closed(a.pd.AllocMR(10, 0)) })
	loop(func() error { return closed(a.pd.CreateAH(context.Background(), route)) })
	loop(func() error {
		qp, err := a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: a.cq, RecvCQ: a.cq})
		if err != nil {
			return err
		}
		if err := qp.Activate(testQKey); err != nil {
			return err
		}
		return qp.Close()
	})
	loop(func() error { // they outlive the device
		_, err := a.device.Statistics()
		return errors.Join(err, a.device.Err())
	})
	eventually(t, "traffic", func() bool { return a.device.engine.Counters().Sent > 100 })
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() {
			if err := a.ctx.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	closers.Wait()
}

// closed closes an object as soon as it is made.
func closed(object interface{ Close() error }, err error) error {
	if err != nil {
		return err
	}
	return object.Close()
}

// Opening and closing leaves no goroutine; TestMain looks at the descriptors.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		a, b, err := OpenWire(addressesA, addressesB)
		check(t, err)
		check(t, errors.Join(a.Close(), b.Close()))
	}
	quietGoroutines(t, before)
}

func TestOpenWireRefuses(t *testing.T) {
	before := runtime.NumGoroutine()
	_, _, err := OpenWire(addressesA, addressesB, WithMTU(6))
	refused(t, err, verbs.ErrInvalid, "MTU256 (1) to MTU4096 (5)")
	quietGoroutines(t, before)
}
