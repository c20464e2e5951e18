package verbstest

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var resizeTests = []test{
	{name: "resize keeps what is queued", run: resizeKeeps},
	{name: "resize below what is queued", run: resizeBelow},
	{name: "resized CQ overruns", run: resizedOverrun},
	{name: "resize an armed CQ", run: resizeArmed},
	{name: "resize below an armed number", run: resizeBelowArmed},
	{name: "resize while arming a number", run: resizeWhileArming},
	{name: "resize under load", run: resizeUnderLoad, rounds: 3},
	{name: "resize by several", run: resizeBySeveral},
	{name: "resize with resets", run: resizeWithResets},
}

// Whatever the sizes, what is queued stays, in its order, and more fits behind it.
func resizeKeeps(t *testing.T, w *world) {
	cq := w.b.newCQ(8)
	qp := w.b.flushing(cq, 64)
	next, polled := uint64(0), uint64(0)
	for _, step := range []struct{ post, entries, poll int }{
		{5, 5, 0}, {0, 100, 2}, {20, 23, 0}, {0, 23, 22}, {3, 64, 0}, {40, 44, 1}, {0, 44, 43}, {0, 1, 0}, {1, 1, 1},
	} {
		for range step.post {
			check(t, qp.PostRecv([]verbs.RecvWR{{ID: next}}))
			next++
		}
		check(t, cq.Resize(step.entries))
		if cq.Capacity() < step.entries {
			t.Errorf("capacity %d, want %d", cq.Capacity(), step.entries)
		}
		eventually(t, "completions", func() bool {
			n, err := cq.Peek(100)
			check(t, err)
			return n == int(next-polled)
		})
		var want []outcome
		for range step.poll {
			want = append(want, flushed(polled))
			polled++
		}
		same(t, w.b.waitOn(cq, step.poll), want...)
	}
}

// flushing makes a queue pair in ERR: each receive that is posted to it completes.
func (s *station) flushing(cq *verbs.CQ, depth uint32) *verbs.QP {
	s.Helper()
	qp := s.newQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxRecvWR: depth}})
	toInit(s, qp)
	to(s, qp, verbs.QPStateErr)
	return qp
}

// A size that does not hold what is queued is refused, and changes nothing.
func resizeBelow(t *testing.T, w *world) {
	cq := w.b.newCQ(8)
	qp := w.b.flushing(cq, 8)
	var want []outcome
	for id := range uint64(5) {
		check(t, qp.PostRecv([]verbs.RecvWR{{ID: id}}))
		want = append(want, flushed(id))
	}
	eventually(t, "completions", func() bool {
		n, err := cq.Peek(8)
		check(t, err)
		return n == 5
	})
	for _, entries := range []int{4, 2, 1} {
		refused(t, cq.Resize(entries), unix.EINVAL, "5 completions", "poll first")
	}
	for _, entries := range []int{0, -1, 1 << 30} {
		refused(t, cq.Resize(entries), unix.EINVAL, "1 to ")
	}
	if cq.Capacity() != 8 {
		t.Errorf("capacity %d", cq.Capacity())
	}
	check(t, cq.Resize(5))
	check(t, cq.Resize(5)) // again, with what was kept
	refused(t, cq.Resize(4), unix.EINVAL)
	same(t, w.b.waitOn(cq, 5), want...)
	check(t, cq.Resize(1))
	check(t, qp.Close())
	check(t, cq.Close())
	refused(t, cq.Resize(8), verbs.ErrObjectClosed)
}

// The new size counts: beyond it is an overrun.
func resizedOverrun(t *testing.T, w *world) {
	small, qps := w.b.overrunnable(1)
	check(t, small.Resize(2))
	w.overrun(qps[0], small, 1)
	w.settle()
	same(t, w.b.waitOn(small, 2), ok(0), ok(1))
	var wcs [1]verbs.WC
	_, err := small.Poll(wcs[:])
	refused(t, err, verbs.ErrCQOverrun, "2 completions")
	w.b.expectEvents(cqErr(small), qpFatal(qps[0]))
}

// An arming goes along.
func resizeArmed(t *testing.T, w *world) {
	c := w.newNotified(16)
	c.arrive(1, 0)
	c.arm(verbs.CQSolicited)
	check(t, c.cq.Resize(32))
	c.arrive(1, 0)
	c.noEvent()
	c.arrive(1, verbs.SendSolicited)
	c.expectEvent()
	c.noEvent()
	check(t, c.cq.ReqNcompNotif(5))
	check(t, c.cq.Resize(20))
	done := waiting(guard(t), t, 1, func(ctx context.Context) error {
		_, err := c.channel.Get(ctx)
		return err
	})
	c.arrive(2, 0)
	check(t, <-done)
	check(t, c.cq.AckEvents(1))
}

// A size that the armed number does not fit in is refused: its event would never come. It can be armed for
// fewer, and when the event has come any size is good.
func resizeBelowArmed(t *testing.T, w *world) {
	c := w.newNotified(16)
	check(t, c.cq.ReqNcompNotif(9))
	refused(t, c.cq.Resize(8), unix.EINVAL, "armed for 9 completions", "ReqNcompNotif")
	if c.cq.Capacity() != 16 {
		t.Errorf("capacity %d", c.cq.Capacity())
	}
	check(t, c.cq.Resize(9))
	check(t, c.cq.ReqNcompNotif(2))
	check(t, c.cq.Resize(4))
	refused(t, c.cq.Resize(1), unix.EINVAL, "armed for 2")
	c.arrive(2, 0)
	c.expectEvent()
	c.waitOn(c.cq, 2)
	check(t, c.cq.Resize(1))
	c.noEvent()
}

// Whichever comes first, a number that a CQ is armed for has room in it.
func resizeWhileArming(t *testing.T, w *world) {
	cq := w.b.newCQOn(w.b.newChannel(), 16)
	for range 200 {
		check(t, cq.ReqNcompNotif(1))
		check(t, cq.Resize(16))
		var resized, armed error
		var all sync.WaitGroup
		all.Go(func() { resized = cq.Resize(4) })
		all.Go(func() { armed = cq.ReqNcompNotif(12) })
		all.Wait()
		if (resized == nil) == (armed == nil) {
			t.Fatalf("resize to 4: %v; arm for 12: %v", resized, armed)
		}
	}
}

// While the card completes, and one goroutine takes what comes, another one resizes: every completion
// comes once, in order, and nobody sleeps for ever. So it is with waits, and with notifications.
func resizeUnderLoad(t *testing.T, w *world) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const messages = 1000
	for name, take := range map[string]func(ctx context.Context, c *notified, wcs []verbs.WC) (int, error){
		"wait":   func(ctx context.Context, c *notified, wcs []verbs.WC) (int, error) { return c.cq.Wait(ctx, wcs) },
		"notify": getThenPoll,
	} {
		c := w.newNotified(depth)
		ctx, stop := context.WithCancel(guard(t))
		var all sync.WaitGroup
		all.Go(func() { c.post(ctx, messages) })
		all.Go(func() {
			for ctx.Err() == nil {
				if err := c.cq.Resize(depth + random.IntN(100)); err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		})
		c.expectInOrder(ctx, name, messages, take)
		stop()
		all.Wait()
	}
}

// getThenPoll is what a program with a completion channel does.
func getThenPoll(ctx context.Context, c *notified, wcs []verbs.WC) (int, error) {
	for {
		if n, err := c.cq.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
		if _, err := c.cq.ReqNotify(verbs.CQNextComp); err != nil {
			return 0, err
		}
		if n, err := c.cq.Poll(wcs); n > 0 || err != nil {
			return n, err
		}
		cq, err := c.channel.Get(ctx)
		if err != nil {
			return 0, err
		}
		if err := cq.AckEvents(1); err != nil {
			return 0, err
		}
	}
}

// post has the queue pair, in ERR, complete so many receives, numbered from 0, as fast as it takes them.
func (c *notified) post(ctx context.Context, messages int) {
	if err := c.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
		c.Error(err)
	}
	for id := 0; id < messages && ctx.Err() == nil; {
		switch err := c.qp.PostRecv([]verbs.RecvWR{{ID: uint64(id)}}); {
		case err == nil:
			id++
		case errors.Is(err, verbs.ErrQueueFull):
			runtime.Gosched()
		default:
			c.Error(err)
			return
		}
	}
}

// expectInOrder takes so many completions, numbered from 0.
func (c *notified) expectInOrder(ctx context.Context, name string, messages int, take func(context.Context, *notified, []verbs.WC) (int, error)) {
	c.Helper()
	wcs := make([]verbs.WC, 3)
	for next := 0; next < messages; {
		n, err := take(ctx, c, wcs)
		if err != nil {
			c.Errorf("%s: after %d of %d: %v", name, next, messages, err)
			return
		}
		for _, wc := range wcs[:n] {
			if wc.ID != uint64(next) {
				c.Errorf("%s: completion %d, want %d", name, wc.ID, next)
				return
			}
			next++
		}
	}
}

// Several goroutines may resize at once; the last one's size counts.
func resizeBySeveral(t *testing.T, w *world) {
	cq := w.a.newCQ(4)
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
	check(t, cq.Resize(17))
	if cq.Capacity() != 32 {
		t.Errorf("capacity %d", cq.Capacity())
	}
}

// Completions of a queue pair that is reset meanwhile go away, those of others stay.
func resizeWithResets(t *testing.T, w *world) {
	cq := w.b.newCQ(64)
	stays, goes := w.b.flushing(cq, 16), w.b.flushing(cq, 16)
	for id := range uint64(8) {
		check(t, goes.PostRecv([]verbs.RecvWR{{ID: 100 + id}}))
		check(t, stays.PostRecv([]verbs.RecvWR{{ID: id}}))
		if id == 3 {
			check(t, cq.Resize(40))
		}
	}
	to(t, goes, verbs.QPStateReset)
	check(t, cq.Resize(20))
	var want []outcome
	for id := range uint64(8) {
		want = append(want, flushed(id))
	}
	same(t, w.b.waitOn(cq, 8), want...)
	same(t, completions(t, cq))
	check(t, goes.Close())
	check(t, stays.Close())
	check(t, cq.Close())
}
