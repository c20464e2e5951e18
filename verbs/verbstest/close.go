// SPDX-License-Identifier: Apache-2.0

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
	"github.com/roced/roced/verbs/verbstest/rig"
)

var closeTests = []rig.Test{
	{Name: "everything after close", Run: everythingAfterClose},
	{Name: "close while waiting", Run: closeWhileWaiting},
	{Name: "poll after close", Run: pollAfterClose},
	{Name: "close under load", Run: closeUnderLoad, Rounds: 10},
	{Name: "closing in any order", Run: closeInAnyOrder},
}

// After Close all calls return ErrClosed; no call hangs or panics.
func everythingAfterClose(t *testing.T, w *rig.World) {
	s := w.A
	ah, route := s.AH(w.B.End.IPv4), s.Route(w.B.End.IPv4)
	membership, err := s.Ctx.JoinMulticast(rig.GroupV4, verbs.JoinFullMember)
	rig.Check(t, err)
	rig.Check(t, s.Ctx.Close())
	rig.Check(t, s.Ctx.Close())
	rig.Check(t, s.Session.Close())
	for name, do := range s.Calls(w.B, ah, route) {
		t.Run(name, func(t *testing.T) { rig.Refused(t, do(), verbs.ErrClosed) })
	}
	for name, do := range map[string]func() error{
		"AH.Close": ah.Close, "QP.Close": s.QP.Close, "MR.Close": s.MR.Close, "CQ.Close": s.CQ.Close, "SRQ.Close": s.SRQ.Close, "PD.Close": s.PD.Close,
		"Membership.Close": membership.Close,
		"DetachMcast":      func() error { return s.QP.DetachMcast(rig.GID(rig.GroupV4), 0) },
		"Session.Err":      s.Session.Err,
	} {
		t.Run(name, func(t *testing.T) { rig.Refused(t, do(), verbs.ErrClosed) })
	}
	<-s.Session.Done()
	s.Session.Wake() // without effect
	if run, is := s.Session.(provider.Progressor); is {
		run.Progress()
	}
}

// Calls that wait when the device is closed return ErrClosed.
func closeWhileWaiting(t *testing.T, w *rig.World) {
	done := rig.Waiting(rig.Guard(t), t, 3, func(ctx context.Context) error {
		var wcs [1]verbs.WC
		_, err := w.A.CQ.Wait(ctx, wcs[:])
		return err
	})
	rig.Check(t, w.A.Ctx.Close())
	for range 3 {
		rig.Refused(t, <-done, verbs.ErrClosed)
	}
}

// Completions that are in the queue when the device is closed can still be polled.
func pollAfterClose(t *testing.T, w *rig.World) {
	w.A.Post(w.A.Send(1, w.A.AH(w.B.End.IPv4), w.B.QP))
	rig.Drained(t, w.A.QP)
	w.Settle()
	rig.Check(t, w.A.Ctx.Close())
	var wcs [2]verbs.WC
	n, err := w.A.CQ.Poll(wcs[:])
	rig.Check(t, err)
	rig.Same(t, wcs[:n], rig.OK(1))
}

// The device is closed while several goroutines make all kinds of calls. Only expected errors occur; the race detector
// checks the rest.
func closeUnderLoad(t *testing.T, w *rig.World) {
	var all, closers sync.WaitGroup
	var sent atomic.Int64
	for _, do := range w.A.Load(w.B, &sent) {
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
	rig.Eventually(t, "traffic", func() bool { return sent.Load() > 100 })
	for range 3 {
		closers.Go(func() {
			if err := w.A.Ctx.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	closers.Wait()
}

// Objects are closed in random order: those in use are refused, and in the end all are closed. A session can be closed
// with all of its objects.
func closeInAnyOrder(t *testing.T, w *rig.World) {
	s := w.A
	ah := s.AH(w.B.End.IPv4)
	other := s.Active(rig.DefaultCap())
	s.Receive(0, 1)
	shared := s.NewQPWith(verbs.QPInitAttr{SendCQ: s.CQ, RecvCQ: s.CQ, SRQ: s.SRQ})
	objects := []rig.Closer{s.PD, s.CQ, s.SRQ, s.MR, ah, other, shared, s.QP}
	for range 3 {
		var left []rig.Closer
		for _, object := range objects {
			if err := object.Close(); err != nil {
				rig.Refused(t, err, verbs.ErrBusy)
				left = append(left, object)
			}
		}
		objects = left
	}
	if len(objects) != 0 {
		t.Errorf("%d objects cannot be closed", len(objects))
	}
	w.B.Receive(0)
	rig.Check(t, w.B.Ctx.Close())
}
