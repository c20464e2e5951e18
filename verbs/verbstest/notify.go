// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var notifyTests = []rig.Test{
	{Name: "peek", Run: peek},
	{Name: "notify flags", Run: notifyFlags},
	{Name: "notify without a channel", Run: notifyWithoutChannel},
	{Name: "one event for each arming", Run: oneEventForEachArming},
	{Name: "notify solicited", Run: notifySolicited},
	{Name: "next goes over solicited", Run: nextOverSolicited},
	{Name: "missed events hint", Run: missedEventsHint},
	{Name: "notify a number of completions", Run: notifyNumber},
	{Name: "wait and notify are apart", Run: waitAndNotify},
	{Name: "overrun notifies", Run: overrunNotifies},
}

// peek checks that PeekCQ returns the number of queued completions, up to the requested number, and dequeues none.
func peek(t *testing.T, w *rig.World) {
	c := w.NewNotified(8)
	for queued := range 4 {
		for asked, want := range []int{0, min(1, queued), min(2, queued), min(3, queued), queued, queued} {
			if n, err := kernel.PeekCQ(c.CQ, asked); n != want || err != nil {
				t.Errorf("%d queued, peek %d: %d, %v", queued, asked, n, err)
			}
		}
		c.Arrive(1, 0)
	}
	rig.Same(t, c.WaitOn(c.CQ, 4), rig.OK(0), rig.OK(0), rig.OK(0), rig.OK(0))
	_, err := kernel.PeekCQ(c.CQ, -1)
	rig.Refused(t, err, unix.EINVAL)
}

// notifyFlags checks that ReqNotify requires exactly one of CQNextComp and CQSolicited.
func notifyFlags(t *testing.T, w *rig.World) {
	c := w.NewNotified(8).CQ
	for flags := range 256 {
		flags := verbs.CQNotifyFlags(flags)
		which := flags &^ verbs.CQReportMissedEvents
		_, err := c.ReqNotify(flags)
		if good := which == verbs.CQSolicited || which == verbs.CQNextComp; good {
			rig.Check(t, err)
		} else {
			rig.Refused(t, err, unix.EINVAL, "exactly one")
		}
	}
	for _, n := range []int{0, -1, c.Capacity() + 1} {
		rig.Refused(t, kernel.ReqNcompNotif(c, n), unix.EINVAL)
	}
	cq := w.A.NewCQ(1)
	rig.Check(t, cq.Close())
	_, err := cq.ReqNotify(verbs.CQNextComp)
	rig.Refused(t, err, verbs.ErrObjectClosed)
	rig.Refused(t, kernel.ReqNcompNotif(cq, 1), verbs.ErrObjectClosed)
	_, err = kernel.PeekCQ(cq, 1)
	rig.Refused(t, err, verbs.ErrObjectClosed)
}

// notifyWithoutChannel checks that arming a CQ without a channel succeeds and has no effect.
func notifyWithoutChannel(t *testing.T, w *rig.World) {
	missed, err := w.B.CQ.ReqNotify(verbs.CQNextComp | verbs.CQReportMissedEvents)
	rig.Check(t, err)
	if missed {
		t.Error("missed, and nothing is there")
	}
	rig.Check(t, kernel.ReqNcompNotif(w.B.CQ, 1))
	w.Alive()
}

// oneEventForEachArming checks that an armed CQ has one event for any number of completions.
func oneEventForEachArming(t *testing.T, w *rig.World) {
	c := w.NewNotified(64)
	c.Arrive(2, 0)
	c.NoEvent() // not armed
	for range 3 {
		c.Arm(verbs.CQNextComp)
		c.Arm(verbs.CQNextComp)
		c.NoEvent() // queued completions cause no event
		c.Arrive(3, 0)
		c.ExpectEvent()
		c.NoEvent()
	}
}

// notifySolicited checks that a CQ armed for solicited completions has an event only for a solicited or failed
// completion.
func notifySolicited(t *testing.T, w *rig.World) {
	c := w.NewNotified(64)
	for range 2 {
		c.Arm(verbs.CQSolicited)
		c.Arrive(3, 0)
		c.NoEvent()
		c.Arrive(1, verbs.SendSolicited)
		c.ExpectEvent()
		c.Arrive(1, verbs.SendSolicited)
		c.NoEvent()
	}
	c.Arm(verbs.CQSolicited)
	c.ReceiveOn(c.QP, 0)
	rig.To(t, c.QP, verbs.QPStateErr)
	c.ExpectEvent()
}

// nextOverSolicited checks that a CQ armed with both flags has an event for the next completion, in either order.
func nextOverSolicited(t *testing.T, w *rig.World) {
	c := w.NewNotified(64)
	for _, flags := range [][]verbs.CQNotifyFlags{{verbs.CQSolicited, verbs.CQNextComp}, {verbs.CQNextComp, verbs.CQSolicited}} {
		for _, one := range flags {
			c.Arm(one)
		}
		c.Arrive(1, 0)
		c.ExpectEvent()
		c.Arrive(1, verbs.SendSolicited)
		c.NoEvent() // both requests are fulfilled
	}
}

// missedEventsHint checks that ReqNotify reports queued completions, only with CQReportMissedEvents.
func missedEventsHint(t *testing.T, w *rig.World) {
	c := w.NewNotified(8)
	for _, flags := range []verbs.CQNotifyFlags{verbs.CQSolicited, verbs.CQNextComp} {
		if c.Arm(flags | verbs.CQReportMissedEvents) {
			t.Error("missed, and nothing is there")
		}
		c.Arrive(1, verbs.SendSolicited)
		c.ExpectEvent()
		if c.Arm(flags) || !c.Arm(flags|verbs.CQReportMissedEvents) {
			t.Error("not the hint")
		}
		c.WaitOn(c.CQ, 1)
		c.Arrive(1, verbs.SendSolicited)
		c.ExpectEvent()
		c.WaitOn(c.CQ, 1)
	}
}

// notifyNumber checks that ReqNcompNotif causes an event when the number of completions is queued, including earlier
// ones.
func notifyNumber(t *testing.T, w *rig.World) {
	c := w.NewNotified(16)
	rig.Check(t, kernel.ReqNcompNotif(c.CQ, 3))
	c.Arrive(2, 0)
	c.NoEvent()
	c.WaitOn(c.CQ, 1)
	c.Arrive(1, 0)
	c.NoEvent() // two are queued
	c.Arrive(1, 0)
	c.ExpectEvent()
	c.Arrive(1, 0)
	c.NoEvent() // the event occurs once
	rig.Check(t, kernel.ReqNcompNotif(c.CQ, 4))
	c.ExpectEvent() // four are already queued
	rig.Check(t, kernel.ReqNcompNotif(c.CQ, 5))
	c.Arm(verbs.CQNextComp)
	c.Arrive(1, 0)
	c.ExpectEvent()
	c.NoEvent() // one for both
}

// waitAndNotify checks that Wait consumes no event of the channel, and causes none.
func waitAndNotify(t *testing.T, w *rig.World) {
	c := w.NewNotified(16)
	ctx := rig.Guard(t)
	wait := func() <-chan error {
		return rig.Waiting(ctx, t, 1, func(ctx context.Context) error {
			var wcs [4]verbs.WC
			_, err := c.CQ.Wait(ctx, wcs[:])
			return err
		})
	}
	send := func() {
		c.ReceiveOn(c.QP, 0)
		c.Peer.Post(c.Peer.Send(1, c.AH, c.QP))
		c.Peer.Expect(rig.OK(1))
	}
	for range 20 {
		done := wait()
		send()
		rig.Check(t, <-done)
		c.NoEvent()
		c.Arm(verbs.CQNextComp)
		done = wait()
		send()
		rig.Check(t, <-done)
		c.ExpectEvent()
	}
}

// overrunNotifies checks that an overrun causes an event, like a failed completion.
func overrunNotifies(t *testing.T, w *rig.World) {
	c := w.NewNotified(8)
	rig.Check(t, c.CQ.Resize(4))
	c.Arrive(4, 0)
	c.Arm(verbs.CQSolicited)
	c.ReceiveOn(c.QP, 0)
	c.Peer.Post(c.Peer.Send(1, c.AH, c.QP))
	c.Peer.Expect(rig.OK(1))
	c.ExpectEvent()
	c.WaitOn(c.CQ, 4)
	_, err := c.CQ.ReqNotify(verbs.CQNextComp)
	rig.Refused(t, err, verbs.ErrCQOverrun, "arm CQ: ")
	rig.Refused(t, kernel.ReqNcompNotif(c.CQ, 1), verbs.ErrCQOverrun, "arm CQ: ")
	rig.Refused(t, c.CQ.Resize(100), verbs.ErrCQOverrun)
}
