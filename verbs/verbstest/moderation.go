// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var moderationTests = []rig.Test{
	{Name: "moderated events under load", Run: moderatedEvents},
	{Name: "moderated waits under load", Run: moderatedWaits},
	{Name: "fewer completions than the count", Run: fewerThanCount},
	{Name: "moderation off", Run: moderationOff},
	{Name: "moderated CQ is closed", Run: moderatedClose},
}

const (
	moderationCount  = 16
	moderationPeriod = 5000 // µs
)

// mostEvents returns the maximum number of events for a number of completions since a time: one for each
// moderationCount completions, one for each elapsed period, and one for the current period.
func mostEvents(completions int, since time.Time) int {
	return completions/moderationCount + int(time.Since(since)/(moderationPeriod*time.Microsecond)) + 1
}

// moderate polls completions under load with a given function, and checks the number of events.
func moderate(t *testing.T, w *rig.World, take func(ctx context.Context, c *rig.Notified, wcs []verbs.WC) (n, woken int, err error)) {
	const messages = 4000
	c := w.NewNotified(256)
	rig.Check(t, c.CQ.Modify(moderationCount, moderationPeriod))
	ctx, stop := context.WithCancel(rig.Guard(t))
	defer stop()
	reader := rig.Watch(ctx)
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-reader.Asked // the reader is about to sleep
		c.Post(ctx, messages)
	}()
	events, wcs := 0, make([]verbs.WC, 3)
	for got := 0; got < messages; {
		n, woken, err := take(reader, c, wcs)
		rig.Check(t, err)
		got += n
		events += woken
	}
	<-done
	if most := mostEvents(messages, began); events > most {
		t.Errorf("%d events for %d completions, want at most %d", events, messages, most)
	}
	if events == 0 {
		t.Error("no events")
	}
}

// moderatedEvents checks that a reader that arms the CQ after each event gets at most one event per count or period.
func moderatedEvents(t *testing.T, w *rig.World) {
	moderate(t, w, func(ctx context.Context, c *rig.Notified, wcs []verbs.WC) (n, woken int, err error) {
		if n, err = c.CQ.Poll(wcs); n > 0 || err != nil {
			return n, 0, err
		}
		if _, err = c.CQ.ReqNotify(verbs.CQNextComp); err != nil {
			return 0, 0, err
		}
		if n, err = c.CQ.Poll(wcs); n > 0 || err != nil {
			return n, 0, err
		}
		cq, err := c.Channel.Get(ctx)
		if err != nil {
			return 0, 0, err
		}
		return 0, 1, cq.AckEvents(1)
	})
}

// moderatedWaits checks the same for a reader that uses Wait.
func moderatedWaits(t *testing.T, w *rig.World) {
	moderate(t, w, func(ctx context.Context, c *rig.Notified, wcs []verbs.WC) (n, woken int, err error) {
		if n, err = c.CQ.Poll(wcs); n > 0 || err != nil {
			return n, 0, err
		}
		reader := rig.Watch(ctx)
		n, err = c.CQ.Wait(reader, wcs)
		return n, len(reader.Asked), err // 0 if it did not sleep
	})
}

// fewerThanCount checks that the period ends the delay if fewer completions than the count arrive.
func fewerThanCount(t *testing.T, w *rig.World) {
	c := w.NewNotified(64)
	rig.Check(t, c.CQ.Modify(1000, moderationPeriod))
	for range 5 {
		c.Arm(verbs.CQNextComp)
		c.Arrive(2, 0)
		c.ExpectEvent()
		c.NoEvent()
		c.WaitOn(c.CQ, 2)
		done := rig.Waiting(rig.Guard(t), t, 1, func(ctx context.Context) error {
			var wcs [1]verbs.WC
			_, err := c.CQ.Wait(ctx, wcs[:])
			return err
		})
		c.ReceiveOn(c.QP, 0)
		c.Peer.Post(c.Peer.Send(1, c.AH, c.QP))
		c.Peer.Expect(rig.OK(1))
		rig.Check(t, <-done)
	}
}

// moderationOff checks that events are not delayed if the count or the period is 0, and that turning moderation off
// sends the delayed event.
func moderationOff(t *testing.T, w *rig.World) {
	c := w.NewNotified(64)
	for _, off := range []struct{ count, period uint16 }{{0, 0}, {1000, 0}, {0, 65535}} {
		rig.Check(t, c.CQ.Modify(1000, 65535))
		c.Arm(verbs.CQNextComp)
		c.Arrive(1, 0)
		rig.Check(t, c.CQ.Modify(off.count, off.period))
		c.ExpectEvent()
		for range 3 {
			c.Arm(verbs.CQNextComp)
			c.Arrive(1, 0)
			c.ExpectEvent()
		}
		c.WaitOn(c.CQ, 4)
	}
}

// moderatedClose checks that a CQ with a delayed event can be closed and resized.
func moderatedClose(t *testing.T, w *rig.World) {
	for range 10 {
		c := w.NewNotified(16)
		rig.Check(t, c.CQ.Modify(1000, 1000))
		c.Arm(verbs.CQNextComp)
		c.Arrive(1, 0)
		rig.Check(t, c.CQ.Resize(32))
		rig.Check(t, c.QP.Close())
		rig.Check(t, c.CQ.Close())
		rig.Check(t, c.Channel.Close())
	}
	w.Alive()
}
