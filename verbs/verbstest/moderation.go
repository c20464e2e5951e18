package verbstest

import (
	"context"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

var moderationTests = []test{
	{name: "moderated events under load", run: moderatedEvents},
	{name: "moderated waits under load", run: moderatedWaits},
	{name: "fewer completions than the count", run: fewerThanCount},
	{name: "moderation off", run: moderationOff},
	{name: "moderated CQ is closed", run: moderatedClose},
}

const (
	moderationCount  = 16
	moderationPeriod = 5000 // µs
)

// mostEvents is how many events there may be for so many completions since a time: one for each count,
// one for each period that has passed, and one that both began.
func mostEvents(completions int, since time.Time) int {
	return completions/moderationCount + int(time.Since(since)/(moderationPeriod*time.Microsecond)) + 1
}

// moderate has a reader take completions under load, and compares how often it was woken.
func moderate(t *testing.T, w *world, take func(ctx context.Context, c *notified, wcs []verbs.WC) (n, woken int, err error)) {
	const messages = 4000
	c := w.newNotified(256)
	check(t, c.cq.Modify(moderationCount, moderationPeriod))
	ctx, stop := context.WithCancel(guard(t))
	defer stop()
	reader := watch(ctx)
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-reader.asked // it is about to sleep
		c.post(ctx, messages)
	}()
	events, wcs := 0, make([]verbs.WC, 3)
	for got := 0; got < messages; {
		n, woken, err := take(reader, c, wcs)
		check(t, err)
		got += n
		events += woken
	}
	<-done
	if most := mostEvents(messages, began); events > most {
		t.Errorf("%d events for %d completions, at most %d", events, messages, most)
	}
	if events == 0 {
		t.Error("no events")
	}
}

// Under load, a reader that arms after each event has at most one for each count or period.
func moderatedEvents(t *testing.T, w *world) {
	moderate(t, w, func(ctx context.Context, c *notified, wcs []verbs.WC) (n, woken int, err error) {
		if n, err = c.cq.Poll(wcs); n > 0 || err != nil {
			return n, 0, err
		}
		if _, err = c.cq.ReqNotify(verbs.CQNextComp); err != nil {
			return 0, 0, err
		}
		if n, err = c.cq.Poll(wcs); n > 0 || err != nil {
			return n, 0, err
		}
		cq, err := c.channel.Get(ctx)
		if err != nil {
			return 0, 0, err
		}
		return 0, 1, cq.AckEvents(1)
	})
}

// So has one that waits.
func moderatedWaits(t *testing.T, w *world) {
	moderate(t, w, func(ctx context.Context, c *notified, wcs []verbs.WC) (n, woken int, err error) {
		if n, err = c.cq.Poll(wcs); n > 0 || err != nil {
			return n, 0, err
		}
		reader := watch(ctx)
		n, err = c.cq.Wait(reader, wcs)
		return n, len(reader.asked), err // 0: it did not sleep
	})
}

// If fewer come than the count, the period ends the wait: nothing is stuck.
func fewerThanCount(t *testing.T, w *world) {
	c := w.newNotified(64)
	check(t, c.cq.Modify(1000, moderationPeriod))
	for range 5 {
		c.arm(verbs.CQNextComp)
		c.arrive(2, 0)
		c.expectEvent()
		c.noEvent()
		c.waitOn(c.cq, 2)
		done := waiting(guard(t), t, 1, func(ctx context.Context) error {
			var wcs [1]verbs.WC
			_, err := c.cq.Wait(ctx, wcs[:])
			return err
		})
		c.receiveOn(c.qp, 0)
		c.peer.post(c.peer.send(1, c.ah, c.qp))
		c.peer.expect(ok(1))
		check(t, <-done)
	}
}

// With one of the two at 0 nothing is put off: each completion has its event. What was put off comes.
func moderationOff(t *testing.T, w *world) {
	c := w.newNotified(64)
	for _, off := range []struct{ count, period uint16 }{{0, 0}, {1000, 0}, {0, 65535}} {
		check(t, c.cq.Modify(1000, 65535))
		c.arm(verbs.CQNextComp)
		c.arrive(1, 0)
		check(t, c.cq.Modify(off.count, off.period))
		c.expectEvent()
		for range 3 {
			c.arm(verbs.CQNextComp)
			c.arrive(1, 0)
			c.expectEvent()
		}
		c.waitOn(c.cq, 4)
	}
}

// A CQ with an event put off can be closed, and resized.
func moderatedClose(t *testing.T, w *world) {
	for range 10 {
		c := w.newNotified(16)
		check(t, c.cq.Modify(1000, 1000))
		c.arm(verbs.CQNextComp)
		c.arrive(1, 0)
		check(t, c.cq.Resize(32))
		check(t, c.qp.Close())
		check(t, c.cq.Close())
		check(t, c.channel.Close())
	}
	w.alive()
}
