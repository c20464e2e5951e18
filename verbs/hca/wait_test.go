package hca

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

// Several goroutines wait on one queue: each completion goes to one of them, and none
// is left asleep.
func TestSeveralWaiters(t *testing.T) {
	w := newWirePair(t)
	a, b := w.a, w.b
	const messages, waiters = 500, 4
	ah := a.ah("10.0.0.2")
	ctx, stop := context.WithCancel(guard(t))
	defer stop()
	var got atomic.Int64
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			var wcs [3]verbs.WC
			for {
				n, err := b.cq.Wait(ctx, wcs[:])
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				for range n {
					if err := b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{b.piece(0, slotLen)}}}); err != nil {
						t.Error(err)
					}
				}
				if got.Add(int64(n)) == messages {
					stop()
				}
			}
		})
	}
	b.receive(0, 1, 2, 3, 4, 5, 6, 7)
	for sent := int64(0); sent < messages; {
		if sent-got.Load() < depth/2 {
			a.post(a.send(1, ah, b))
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

// A cancelled wait says so, and the next one is not harmed by it.
func TestWaitCancel(t *testing.T) {
	w := newWirePair(t)
	a, b := w.a, w.b
	ah := a.ah("10.0.0.2")
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
		a.post(a.send(1, ah, b))
		expect(t, b.wait(1), ok(0))
		expect(t, a.wait(1), ok(1))
	}
	if n, err := b.cq.Wait(context.Background(), nil); n != 0 || err != nil {
		t.Errorf("wait for no completions: %d, %v", n, err)
	}
}

// Waiting and arriving race: whoever arms the queue as a message comes is woken.
func TestArmedRace(t *testing.T) {
	for name, options := range map[string][]Option{
		"worker":         {WithoutInline(), WithSpin(0)},
		"inline":         nil,
		"without a spin": {WithSpin(0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWirePair(t, options...)
			a, b := w.a, w.b
			there, back := a.ah("10.0.0.2"), b.ah("10.0.0.1")
			const rounds = 2000
			a.receive(0)
			b.receive(0)
			echo := make(chan struct{})
			go func() {
				defer close(echo)
				for range rounds {
					answer(b, back, a)
				}
			}()
			for range rounds {
				a.post(a.send(9, there, b))
				a.wait(2)
				a.receive(0)
			}
			<-echo
		})
	}
}

// answer waits for a message, posts the receive anew, answers, and waits till that is sent.
func answer(s *station, ah *verbs.AH, peer *station) {
	s.wait(1)
	s.receive(0)
	s.post(s.send(9, ah, peer))
	s.wait(1)
}

// A queue pair that is reset while its completions are polled: its slots are counted
// right afterwards, whichever was first.
func TestResetWhilePolling(t *testing.T) {
	w := newStillPair(t)
	a, b := w.a, w.b
	const many = 4096
	sendCQ, err := a.ctx.CreateCQ(many)
	check(t, err)
	recvCQ, err := a.ctx.CreateCQ(many)
	check(t, err)
	qp, err := a.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: sendCQ, RecvCQ: recvCQ, Cap: verbs.QPCap{MaxSendWR: many, MaxRecvWR: many}})
	check(t, err)
	sends, receives := make([]verbs.SendWR, many), make([]verbs.RecvWR, many)
	ah := a.ah("10.0.0.2")
	for i := range sends {
		sends[i] = a.send(1, ah, b)
	}
	wcs := [2][]verbs.WC{make([]verbs.WC, many), make([]verbs.WC, many)}
	for range 100 {
		check(t, qp.Activate(testQKey))
		check(t, qp.PostSend(sends)) // all slots are free
		check(t, qp.PostRecv(receives))
		w.run()
		to(t, qp, verbs.QPStateErr) // receives complete too
		var pollers sync.WaitGroup
		for i, cq := range []*verbs.CQ{sendCQ, recvCQ} {
			pollers.Go(func() {
				if _, err := cq.Poll(wcs[i]); err != nil {
					t.Error(err)
				}
			})
		}
		runtime.Gosched()
		to(t, qp, verbs.QPStateReset)
		pollers.Wait()
	}
}
