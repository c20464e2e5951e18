// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var waitTests = []rig.Test{
	{Name: "several waiters", Run: severalWaiters},
	{Name: "wait is cancelled", Run: waitCancel},
	{Name: "close CQ while waiting", Run: closeCQWhileWaiting},
	{Name: "armed race", Run: armedRace},
}

// severalWaiters checks that several goroutines can wait on one CQ: each completion goes to one of them, and none is
// lost.
func severalWaiters(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	const messages, waiters = 500, 4
	ah := a.AH(b.End.IPv4)
	ctx, stop := context.WithCancel(rig.Guard(t))
	defer stop()
	var got atomic.Int64
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			err := b.Serve(ctx, func(n int) {
				if got.Add(int64(n)) == messages {
					stop()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	b.Receive(0, 1, 2, 3, 4, 5, 6, 7)
	for sent := int64(0); sent < messages && ctx.Err() == nil; {
		if sent-got.Load() < rig.Depth/2 {
			a.Post(a.Send(1, ah, b.QP))
			a.Wait(1)
			sent++
		} else {
			time.Sleep(10 * time.Microsecond)
		}
	}
	all.Wait()
	if n := got.Load(); n != messages {
		t.Errorf("%d of %d; drops %v", n, messages, b.Drops())
	}
}

// waitCancel checks that a cancelled wait returns the context's error, and does not affect the next wait.
func waitCancel(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	var wcs [1]verbs.WC
	for range 50 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			_, err := b.CQ.Wait(ctx, wcs[:])
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		b.Receive(0)
		a.Post(a.Send(1, ah, b.QP))
		b.Expect(rig.OK(0))
		a.Expect(rig.OK(1))
	}
	if n, err := b.CQ.Wait(context.Background(), nil); n != 0 || err != nil {
		t.Errorf("wait for no completions: %d, %v", n, err)
	}
}

// closeCQWhileWaiting checks that closing a CQ wakes its waiters with ErrObjectClosed.
func closeCQWhileWaiting(t *testing.T, w *rig.World) {
	cq := w.A.NewCQ(8)
	done := rig.Waiting(rig.Guard(t), t, 3, func(ctx context.Context) error {
		var wcs [1]verbs.WC
		_, err := cq.Wait(ctx, wcs[:])
		return err
	})
	rig.Check(t, cq.Close())
	for range 3 {
		rig.Refused(t, <-done, verbs.ErrObjectClosed, "the CQ")
	}
	var wcs [1]verbs.WC
	_, err := cq.Poll(wcs[:])
	rig.Refused(t, err, verbs.ErrObjectClosed, "the CQ")
	_, err = cq.Wait(rig.Guard(t), wcs[:])
	rig.Refused(t, err, verbs.ErrObjectClosed)
	rig.Refused(t, cq.Close(), verbs.ErrObjectClosed)
	_, err = w.A.PD.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq})
	rig.Refused(t, err, verbs.ErrObjectClosed, "the CQ")
}

// armedRace checks that a wait that arms the CQ while a message arrives is woken.
func armedRace(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	there, back := a.AH(b.End.IPv4), b.AH(a.End.IPv4)
	rounds := rig.Often(2000)
	a.Receive(0)
	b.Receive(0)
	echo := make(chan struct{})
	go func() {
		defer close(echo)
		for range rounds {
			if !b.Echo(back, a) {
				return
			}
		}
	}()
	for range rounds {
		a.Post(a.Send(9, there, b.QP))
		a.Wait(2)
		a.Receive(0)
	}
	<-echo
}
