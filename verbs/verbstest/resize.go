// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var resizeTests = []rig.Test{
	{Name: "resize keeps completions", Run: resizeKeeps},
	{Name: "resize below the queued completions", Run: resizeBelow},
	{Name: "resized CQ overruns", Run: resizedOverrun},
	{Name: "resize an armed CQ", Run: resizeArmed},
	{Name: "resize below an armed number", Run: resizeBelowArmed},
	{Name: "resize while arming a number", Run: resizeWhileArming},
	{Name: "resize under load", Run: resizeUnderLoad, Rounds: 3},
	{Name: "resize by several", Run: resizeBySeveral},
	{Name: "resize with resets", Run: resizeWithResets},
}

// resizeKeeps checks that resizing keeps the queued completions in order, and that more can follow.
func resizeKeeps(t *testing.T, w *rig.World) {
	cq := w.B.NewCQ(8)
	qp := w.B.Flushing(cq, 64)
	next, polled := uint64(0), uint64(0)
	for _, step := range []struct{ post, entries, poll int }{
		{5, 5, 0}, {0, 100, 2}, {20, 23, 0}, {0, 23, 22}, {3, 64, 0}, {40, 44, 1}, {0, 44, 43}, {0, 1, 0}, {1, 1, 1},
	} {
		for range step.post {
			rig.Check(t, qp.PostRecv([]verbs.RecvWR{{ID: next}}))
			next++
		}
		rig.Check(t, cq.Resize(step.entries))
		if cq.Capacity() < step.entries {
			t.Errorf("capacity %d, want %d", cq.Capacity(), step.entries)
		}
		rig.Eventually(t, "completions", func() bool {
			n, err := kernel.PeekCQ(cq, 100)
			rig.Check(t, err)
			return n == int(next-polled)
		})
		var want []rig.Outcome
		for range step.poll {
			want = append(want, rig.Flushed(polled))
			polled++
		}
		rig.Same(t, w.B.WaitOn(cq, step.poll), want...)
	}
}

// resizeBelow checks that a size below the number of queued completions is refused without an effect.
func resizeBelow(t *testing.T, w *rig.World) {
	cq := w.B.NewCQ(8)
	qp := w.B.Flushing(cq, 8)
	var want []rig.Outcome
	for id := range uint64(5) {
		rig.Check(t, qp.PostRecv([]verbs.RecvWR{{ID: id}}))
		want = append(want, rig.Flushed(id))
	}
	rig.Eventually(t, "completions", func() bool {
		n, err := kernel.PeekCQ(cq, 8)
		rig.Check(t, err)
		return n == 5
	})
	for _, entries := range []int{4, 2, 1} {
		rig.Refused(t, cq.Resize(entries), unix.EINVAL, "5 completions", "poll first")
	}
	for _, entries := range []int{0, -1, 1 << 30} {
		rig.Refused(t, cq.Resize(entries), unix.EINVAL, "1 to ")
	}
	if cq.Capacity() != 8 {
		t.Errorf("capacity %d", cq.Capacity())
	}
	rig.Check(t, cq.Resize(5))
	rig.Check(t, cq.Resize(5)) // a second resize, which keeps the same completions
	rig.Refused(t, cq.Resize(4), unix.EINVAL)
	rig.Same(t, w.B.WaitOn(cq, 5), want...)
	rig.Check(t, cq.Resize(1))
	rig.Check(t, qp.Close())
	rig.Check(t, cq.Close())
	rig.Refused(t, cq.Resize(8), verbs.ErrObjectClosed)
}

// resizedOverrun checks that a completion beyond the new size is an overrun.
func resizedOverrun(t *testing.T, w *rig.World) {
	small, qps := w.B.Overrunnable(1)
	rig.Check(t, small.Resize(2))
	w.Overrun(qps[0], small, 1)
	w.Settle()
	rig.Same(t, w.B.WaitOn(small, 2), rig.OK(0), rig.OK(1))
	var wcs [1]verbs.WC
	_, err := small.Poll(wcs[:])
	rig.Refused(t, err, verbs.ErrCQOverrun, "2 completions")
	w.B.ExpectEvents(cqErr(small), qpFatal(qps[0]))
}

// resizeArmed checks that an armed CQ remains armed.
func resizeArmed(t *testing.T, w *rig.World) {
	c := w.NewNotified(16)
	c.Arrive(1, 0)
	c.Arm(verbs.CQSolicited)
	rig.Check(t, c.CQ.Resize(32))
	c.Arrive(1, 0)
	c.NoEvent()
	c.Arrive(1, verbs.SendSolicited)
	c.ExpectEvent()
	c.NoEvent()
	rig.Check(t, kernel.ReqNcompNotif(c.CQ, 5))
	rig.Check(t, c.CQ.Resize(20))
	done := rig.Waiting(rig.Guard(t), t, 1, func(ctx context.Context) error {
		_, err := c.Channel.Get(ctx)
		return err
	})
	c.Arrive(2, 0)
	rig.Check(t, <-done)
	rig.Check(t, c.CQ.AckEvents(1))
}

// resizeBelowArmed checks that a size below the armed number is refused, since the event would never occur. After
// arming a smaller number, or after the event, smaller sizes are allowed.
func resizeBelowArmed(t *testing.T, w *rig.World) {
	c := w.NewNotified(16)
	rig.Check(t, kernel.ReqNcompNotif(c.CQ, 9))
	rig.Refused(t, c.CQ.Resize(8), unix.EINVAL, "armed for 9 completions", "ReqNcompNotif")
	if c.CQ.Capacity() != 16 {
		t.Errorf("capacity %d", c.CQ.Capacity())
	}
	rig.Check(t, c.CQ.Resize(9))
	rig.Check(t, kernel.ReqNcompNotif(c.CQ, 2))
	rig.Check(t, c.CQ.Resize(4))
	rig.Refused(t, c.CQ.Resize(1), unix.EINVAL, "armed for 2")
	c.Arrive(2, 0)
	c.ExpectEvent()
	c.WaitOn(c.CQ, 2)
	rig.Check(t, c.CQ.Resize(1))
	c.NoEvent()
}

// resizeWhileArming resizes and arms a CQ concurrently. One of the calls must fail if the armed number exceeds the new
// size.
func resizeWhileArming(t *testing.T, w *rig.World) {
	cq := w.B.NewCQOn(w.B.NewChannel(), 16)
	for range 200 {
		rig.Check(t, kernel.ReqNcompNotif(cq, 1))
		rig.Check(t, cq.Resize(16))
		var resized, armed error
		var all sync.WaitGroup
		all.Go(func() { resized = cq.Resize(4) })
		all.Go(func() { armed = kernel.ReqNcompNotif(cq, 12) })
		all.Wait()
		if (resized == nil) == (armed == nil) {
			t.Fatalf("resize to 4: %v; arm for 12: %v", resized, armed)
		}
	}
}

// resizeUnderLoad resizes a CQ while the card completes requests and another goroutine polls. Each completion must
// arrive once and in order, with Wait and with notifications.
func resizeUnderLoad(t *testing.T, w *rig.World) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	messages := rig.Often(1000)
	for name, take := range map[string]func(ctx context.Context, c *rig.Notified, wcs []verbs.WC) (int, error){
		"wait":   func(ctx context.Context, c *rig.Notified, wcs []verbs.WC) (int, error) { return c.CQ.Wait(ctx, wcs) },
		"notify": getThenPoll,
	} {
		c := w.NewNotified(rig.Depth)
		ctx, stop := context.WithCancel(rig.Guard(t))
		var all sync.WaitGroup
		all.Go(func() { c.Post(ctx, messages) })
		all.Go(func() {
			for ctx.Err() == nil {
				if err := c.CQ.Resize(rig.Depth + random.IntN(100)); err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		})
		c.ExpectInOrder(ctx, name, messages, take)
		stop()
		all.Wait()
	}
}

// getThenPoll is the polling loop of a program with a completion channel.
func getThenPoll(ctx context.Context, c *rig.Notified, wcs []verbs.WC) (int, error) {
	for {
		if n, err := c.CQ.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
		if _, err := c.CQ.ReqNotify(verbs.CQNextComp); err != nil {
			return 0, err
		}
		if n, err := c.CQ.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
		cq, err := c.Channel.Get(ctx)
		if err != nil {
			return 0, err
		}
		if err := cq.AckEvents(1); err != nil {
			return 0, err
		}
	}
}

// resizeBySeveral resizes a CQ from several goroutines. The capacity is that of the last call.
func resizeBySeveral(t *testing.T, w *rig.World) {
	cq := w.A.NewCQ(4)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 50 {
				if err := cq.Resize(1 + (i*50+j)%64); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	rig.Check(t, cq.Resize(17))
	if cq.Capacity() != 32 {
		t.Errorf("capacity %d", cq.Capacity())
	}
}

// resizeWithResets checks that a reset between resizes discards the completions of its queue pair only.
func resizeWithResets(t *testing.T, w *rig.World) {
	cq := w.B.NewCQ(64)
	stays, goes := w.B.Flushing(cq, 16), w.B.Flushing(cq, 16)
	for id := range uint64(8) {
		rig.Check(t, goes.PostRecv([]verbs.RecvWR{{ID: 100 + id}}))
		rig.Check(t, stays.PostRecv([]verbs.RecvWR{{ID: id}}))
		if id == 3 {
			rig.Check(t, cq.Resize(40))
		}
	}
	rig.To(t, goes, verbs.QPStateReset)
	rig.Check(t, cq.Resize(20))
	var want []rig.Outcome
	for id := range uint64(8) {
		want = append(want, rig.Flushed(id))
	}
	rig.Same(t, w.B.WaitOn(cq, 8), want...)
	rig.Same(t, rig.Completions(t, cq))
	rig.Check(t, goes.Close())
	rig.Check(t, stays.Close())
	rig.Check(t, cq.Close())
}
