package verbstest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

var closeTests = []test{
	{name: "everything after close", run: everythingAfterClose},
	{name: "close while waiting", run: closeWhileWaiting},
	{name: "poll after close", run: pollAfterClose},
	{name: "close under load", run: closeUnderLoad, rounds: 10},
	{name: "closing in any order", run: closeInAnyOrder},
}

// After Close everything says that the device is closed; nothing hangs, nothing panics.
func everythingAfterClose(t *testing.T, w *world) {
	s := w.a
	ah, route := s.ah(w.b.end.IPv4), s.route(w.b.end.IPv4)
	membership, err := s.ctx.JoinMulticast(groupV4, verbs.JoinFullMember)
	check(t, err)
	check(t, s.ctx.Close())
	check(t, s.ctx.Close())
	check(t, s.session.Close())
	for name, do := range s.calls(w.b, ah, route) {
		t.Run(name, func(t *testing.T) { refused(t, do(), verbs.ErrClosed) })
	}
	for name, do := range map[string]func() error{
		"AH.Close": ah.Close, "QP.Close": s.qp.Close, "MR.Close": s.mr.Close, "CQ.Close": s.cq.Close, "SRQ.Close": s.srq.Close, "PD.Close": s.pd.Close,
		"Membership.Close": membership.Close,
		"DetachMcast":      func() error { return s.qp.DetachMcast(gid(groupV4), 0) },
		"Session.Err":      s.session.Err,
	} {
		t.Run(name, func(t *testing.T) { refused(t, do(), verbs.ErrClosed) })
	}
	<-s.session.Done()
	s.session.Wake() // without effect
	if run, is := s.session.(provider.Progressor); is {
		run.Progress()
	}
}

// calls are all that a device which is gone refuses, but those that free.
func (s *station) calls(peer *station, ah *verbs.AH, route *verbs.AHAttr) map[string]func() error {
	var wcs [1]verbs.WC
	return map[string]func() error{
		"QueryDevice":       func() error { _, err := s.ctx.QueryDevice(); return err },
		"QueryPort":         func() error { _, err := s.ctx.QueryPort(1); return err },
		"QueryGID":          func() error { _, err := s.ctx.QueryGID(1, 0); return err },
		"QueryGIDEx":        func() error { _, err := s.ctx.QueryGIDEx(1, 0); return err },
		"QueryPKey":         func() error { _, err := s.ctx.QueryPKey(1, 0); return err },
		"QueryGIDTable":     func() error { _, err := s.ctx.QueryGIDTable(1); return err },
		"AllocPD":           func() error { _, err := s.ctx.AllocPD(); return err },
		"CreateCQ":          func() error { _, err := s.ctx.CreateCQ(1); return err },
		"CreateSRQ":         func() error { _, err := s.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1}); return err },
		"AllocMR":           func() error { _, err := s.pd.AllocMR(1, 0); return err },
		"CreateAH":          func() error { _, err := s.pd.CreateAH(context.Background(), route); return err },
		"AH.Modify":         func() error { return ah.Modify(context.Background(), route) },
		"AH.Query":          func() error { _, err := ah.Query(); return err },
		"CreateCompChannel": func() error { _, err := s.ctx.CreateCompChannel(); return err },
		"QueryRTValues":     func() error { _, err := s.ctx.QueryRTValues(); return err },
		"Resize":            func() error { return s.cq.Resize(256) },
		"ModifyCQ":          func() error { return s.cq.Modify(1, 1) },
		"Peek":              func() error { _, err := s.cq.Peek(1); return err },
		"ReqNotify":         func() error { _, err := s.cq.ReqNotify(verbs.CQNextComp); return err },
		"ReqNcompNotif":     func() error { return s.cq.ReqNcompNotif(1) },
		"CreateQP": func() error {
			_, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
			return err
		},
		"RegMR": func() error {
			_, err := s.pd.RegMR(make([]byte, 1), 0)
			if verbs.KindOf(err) == verbs.ErrUnsupported { // closed or not
				return verbs.ErrClosed
			}
			return err
		},
		"Rereg":          func() error { return s.mr.Rereg(&verbs.ReregAttr{}, verbs.ReregChangeAccess) },
		"Modify":         func() error { return s.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState) },
		"reset":          func() error { return s.qp.Modify(&verbs.QPAttr{}, verbs.QPAttrState) },
		"Query":          func() error { _, _, err := s.qp.Query(); return err },
		"PostSend":       func() error { return s.qp.PostSend([]verbs.SendWR{s.send(1, ah, peer.qp)}) },
		"SRQ.PostRecv":   func() error { return s.srq.PostRecv([]verbs.RecvWR{{}}) },
		"SRQ.Modify":     func() error { return s.srq.Modify(&verbs.SRQAttr{MaxWR: 1}, verbs.SRQMaxWR) },
		"SRQ.Query":      func() error { _, err := s.srq.Query(); return err },
		"PostRecv":       func() error { return s.qp.PostRecv([]verbs.RecvWR{{}}) },
		"Poll":           func() error { _, err := s.cq.Poll(wcs[:]); return err },
		"Wait":           func() error { _, err := s.cq.Wait(guard(s), wcs[:]); return err },
		"AttachMcast":    func() error { return s.qp.AttachMcast(gid(groupV4), 0) },
		"full join":      func() error { _, err := s.ctx.JoinMulticast(groupV4, verbs.JoinFullMember); return err },
		"send-only join": func() error { _, err := s.ctx.JoinMulticast(groupV4, verbs.JoinSendOnlyFullMember); return err },
		"GetAsyncEvent":  func() error { _, err := s.ctx.GetAsyncEvent(guard(s)); return err },
	}
}

// Calls that wait when the device is closed return ErrClosed.
func closeWhileWaiting(t *testing.T, w *world) {
	done := waiting(guard(t), t, 3, func(ctx context.Context) error {
		var wcs [1]verbs.WC
		_, err := w.a.cq.Wait(ctx, wcs[:])
		return err
	})
	check(t, w.a.ctx.Close())
	for range 3 {
		refused(t, <-done, verbs.ErrClosed)
	}
}

// Completions that lie in the queue when the device is closed can still be polled.
func pollAfterClose(t *testing.T, w *world) {
	w.a.post(w.a.send(1, w.a.ah(w.b.end.IPv4), w.b.qp))
	drained(t, w.a.qp)
	w.settle()
	check(t, w.a.ctx.Close())
	var wcs [2]verbs.WC
	n, err := w.a.cq.Poll(wcs[:])
	check(t, err)
	same(t, wcs[:n], ok(1))
}

// Everything at once, from several goroutines, and the device is closed under it: the
// race detector watches, and every error is one that may be.
func closeUnderLoad(t *testing.T, w *world) {
	var all, closers sync.WaitGroup
	var sent atomic.Int64
	for _, do := range w.a.load(w.b, &sent) {
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
	eventually(t, "traffic", func() bool { return sent.Load() > 100 })
	for range 3 {
		closers.Go(func() {
			if err := w.a.ctx.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	closers.Wait()
}

// load is what programs do all the time.
func (s *station) load(peer *station, sent *atomic.Int64) []func() error {
	route, ah, ctx := s.route(peer.end.IPv4), s.ah(peer.end.IPv4), guard(s)
	return []func() error{
		func() error {
			err := s.qp.PostSend([]verbs.SendWR{s.send(1, ah, peer.qp)})
			if err == nil {
				sent.Add(1)
			}
			return err
		},
		func() error { return s.qp.PostRecv([]verbs.RecvWR{{}}) },
		func() error { var wcs [4]verbs.WC; _, err := s.cq.Poll(wcs[:]); return err },
		func() error { var wcs [4]verbs.WC; _, err := s.cq.Wait(ctx, wcs[:]); return err },
		func() error { return s.cq.Resize(256) },
		func() error { return closed(s.ctx.CreateCompChannel()) },
		func() error { return closed(s.pd.AllocMR(10, 0)) },
		func() error { return s.srq.PostRecv([]verbs.RecvWR{{}}) },
		func() error { return s.srq.Modify(&verbs.SRQAttr{MaxWR: 2 * depth}, verbs.SRQMaxWR) },
		func() error { return closed(s.pd.CreateAH(context.Background(), route)) },
		func() error { return ah.Modify(context.Background(), route) },
		func() error {
			return s.mr.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess)
		},
		func() error {
			qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq})
			if err != nil {
				return err
			}
			if err := qp.Activate(testQKey); err != nil {
				return err
			}
			return qp.Close()
		},
	}
}

// closed closes an object as soon as it is made.
func closed(object closer, err error) error {
	if err != nil {
		return err
	}
	return object.Close()
}

// Whatever the order, what is used by another is refused, and in the end all is closed; a
// session may be closed with everything in it.
func closeInAnyOrder(t *testing.T, w *world) {
	s := w.a
	ah := s.ah(w.b.end.IPv4)
	other := s.active(defaultCap())
	s.receive(0, 1)
	shared := s.newQPWith(verbs.QPInitAttr{SendCQ: s.cq, RecvCQ: s.cq, SRQ: s.srq})
	objects := []closer{s.pd, s.cq, s.srq, s.mr, ah, other, shared, s.qp}
	for range 3 {
		var left []closer
		for _, object := range objects {
			if err := object.Close(); err != nil {
				refused(t, err, verbs.ErrBusy)
				left = append(left, object)
			}
		}
		objects = left
	}
	if len(objects) != 0 {
		t.Errorf("%d objects cannot be closed", len(objects))
	}
	w.b.receive(0)
	check(t, w.b.ctx.Close())
}
