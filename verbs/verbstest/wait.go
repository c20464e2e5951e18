package verbstest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

var waitTests = []test{
	{name: "several waiters", run: severalWaiters},
	{name: "wait is cancelled", run: waitCancel},
	{name: "close CQ while waiting", run: closeCQWhileWaiting},
	{name: "armed race", run: armedRace},
}

// Several goroutines wait on one queue: each completion goes to one of them, and none
// is left asleep.
func severalWaiters(t *testing.T, w *world) {
	a, b := w.a, w.b
	const messages, waiters = 500, 4
	ah := a.ah(b.end.IPv4)
	ctx, stop := context.WithCancel(guard(t))
	defer stop()
	var got atomic.Int64
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			err := b.serve(ctx, func(n int) {
				if got.Add(int64(n)) == messages {
					stop()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	b.receive(0, 1, 2, 3, 4, 5, 6, 7)
	for sent := int64(0); sent < messages && ctx.Err() == nil; {
		if sent-got.Load() < depth/2 {
			a.post(a.send(1, ah, b.qp))
			a.wait(1)
			sent++
		} else {
			time.Sleep(10 * time.Microsecond)
		}
	}
	all.Wait()
	if n := got.Load(); n != messages {
		t.Errorf("%d of %d; drops %v", n, messages, b.drops())
	}
}

// serve waits for messages, and posts their receives anew, until it fails.
func (s *station) serve(ctx context.Context, got func(n int)) error {
	var wcs [3]verbs.WC
	for {
		n, err := s.cq.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		for range n {
			if err := s.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.piece(0, slotLen)}}}); err != nil {
				return err
			}
		}
		got(n)
	}
}

// A cancelled wait gives the context's error, and does not affect the next wait.
func waitCancel(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	var wcs [1]verbs.WC
	for range 50 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			_, err := b.cq.Wait(ctx, wcs[:])
			done <- err
		}()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		b.receive(0)
		a.post(a.send(1, ah, b.qp))
		b.expect(ok(0))
		a.expect(ok(1))
	}
	if n, err := b.cq.Wait(context.Background(), nil); n != 0 || err != nil {
		t.Errorf("wait for no completions: %d, %v", n, err)
	}
}

// When a queue is closed, those that wait on it get ErrObjectClosed.
func closeCQWhileWaiting(t *testing.T, w *world) {
	cq := w.a.newCQ(8)
	done := waiting(guard(t), t, 3, func(ctx context.Context) error {
		var wcs [1]verbs.WC
		_, err := cq.Wait(ctx, wcs[:])
		return err
	})
	check(t, cq.Close())
	for range 3 {
		refused(t, <-done, verbs.ErrObjectClosed, "the CQ")
	}
	var wcs [1]verbs.WC
	_, err := cq.Poll(wcs[:])
	refused(t, err, verbs.ErrObjectClosed, "the CQ")
	_, err = cq.Wait(guard(t), wcs[:])
	refused(t, err, verbs.ErrObjectClosed)
	refused(t, cq.Close(), verbs.ErrObjectClosed)
	_, err = w.a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq})
	refused(t, err, verbs.ErrObjectClosed, "the CQ")
}

// A wait that arms the queue just as a message comes is woken.
func armedRace(t *testing.T, w *world) {
	a, b := w.a, w.b
	there, back := a.ah(b.end.IPv4), b.ah(a.end.IPv4)
	const rounds = 2000
	a.receive(0)
	b.receive(0)
	echo := make(chan struct{})
	go func() {
		defer close(echo)
		for range rounds {
			if !b.echo(back, a) {
				return
			}
		}
	}()
	for range rounds {
		a.post(a.send(9, there, b.qp))
		a.wait(2)
		a.receive(0)
	}
	<-echo
}

// echo waits for a message, posts the receive anew, answers, and waits till that is sent. It
// runs beside the test, and ends it only by an error.
func (s *station) echo(ah *verbs.AH, peer *station) bool {
	var wcs [1]verbs.WC
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	for _, step := range []func() error{
		func() error { _, err := s.cq.Wait(ctx, wcs[:]); return err },
		func() error { return s.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.piece(0, slotLen)}}}) },
		func() error { return s.qp.PostSend([]verbs.SendWR{s.send(9, ah, peer.qp)}) },
		func() error { _, err := s.cq.Wait(ctx, wcs[:]); return err },
	} {
		if err := step(); err != nil {
			s.Error(err)
			return false
		}
	}
	return true
}
