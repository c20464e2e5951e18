package verbstest

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var notifyTests = []test{
	{name: "peek", run: peek},
	{name: "notify flags", run: notifyFlags},
	{name: "notify without a channel", run: notifyWithoutChannel},
	{name: "one event for each arming", run: oneEventForEachArming},
	{name: "notify solicited", run: notifySolicited},
	{name: "next goes over solicited", run: nextOverSolicited},
	{name: "missed events hint", run: missedEventsHint},
	{name: "notify a number of completions", run: notifyNumber},
	{name: "wait and notify are apart", run: waitAndNotify},
	{name: "overrun notifies", run: overrunNotifies},
}

// notified is a station with a queue pair whose completions go to a CQ of a channel.
type notified struct {
	*station
	peer    *station
	channel *verbs.CompChannel
	cq      *verbs.CQ
	qp      *verbs.QP
	ah      *verbs.AH // of the peer's, to here
}

// newNotified makes one at b, with room for n receives and their completions, n a power of two.
func (w *world) newNotified(n int) *notified {
	w.b.Helper()
	c := &notified{station: w.b, peer: w.a, channel: w.b.newChannel(), ah: w.a.ah(w.b.end.IPv4)}
	c.cq = w.b.newCQOn(c.channel, n)
	capacity := defaultCap()
	capacity.MaxRecvWR = uint32(n)
	c.qp = w.b.newQPWith(verbs.QPInitAttr{SendCQ: w.b.cq, RecvCQ: c.cq, Cap: capacity})
	check(w.b, c.qp.Activate(testQKey))
	return c
}

func (s *station) newChannel() *verbs.CompChannel {
	s.Helper()
	channel, err := s.ctx.CreateCompChannel()
	check(s, err)
	return channel
}

func (s *station) newCQOn(channel *verbs.CompChannel, entries int) *verbs.CQ {
	s.Helper()
	cq, err := s.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: entries, Channel: channel})
	check(s, err)
	return cq
}

// arrive has so many messages come, and returns when their completions are there.
func (c *notified) arrive(n int, flags verbs.SendFlags) {
	c.Helper()
	before := c.peeked()
	for i := range n {
		c.receiveOn(c.qp, i%slots)
		wr := c.peer.send(1, c.ah, c.qp)
		wr.Flags |= flags
		c.peer.post(wr)
		c.peer.expect(ok(1))
	}
	eventually(c, "completions", func() bool { return c.peeked() == before+n })
}

func (c *notified) peeked() int {
	c.Helper()
	n, err := c.cq.Peek(1 << 20)
	check(c, err)
	return n
}

func (c *notified) arm(flags verbs.CQNotifyFlags) (missed bool) {
	c.Helper()
	missed, err := c.cq.ReqNotify(flags)
	check(c, err)
	return missed
}

// expectEvent waits for an event of this CQ, and acknowledges it.
func (c *notified) expectEvent() {
	c.Helper()
	cq, err := c.channel.Get(guard(c))
	check(c, err)
	if cq != c.cq {
		c.Errorf("an event of another CQ")
	}
	check(c, cq.AckEvents(1))
}

// noEvent checks that no event is there: another one that is asked for now comes first.
func (c *notified) noEvent() {
	c.Helper()
	check(c, noEventOf(c, c.channel, c.station))
}

// noEventOf has an event made on a CQ of its own, and looks whether it comes first.
func noEventOf(t testing.TB, channel *verbs.CompChannel, s *station) error {
	t.Helper()
	probe := s.newCQOn(channel, 1)
	qp := s.newQPWith(verbs.QPInitAttr{SendCQ: probe, RecvCQ: probe, Cap: verbs.QPCap{MaxRecvWR: 1}})
	toInit(t, qp)
	_, err := probe.ReqNotify(verbs.CQNextComp)
	check(t, err)
	check(t, qp.PostRecv([]verbs.RecvWR{{}}))
	to(t, qp, verbs.QPStateErr)
	cq, err := channel.Get(guard(t))
	check(t, err)
	if err := cq.AckEvents(1); err != nil {
		return err
	}
	if cq != probe {
		return errors.New("an event that nobody has asked for")
	}
	check(t, qp.Close())
	return probe.Close()
}

// Peek counts what is queued, up to the number that is asked for, and takes nothing.
func peek(t *testing.T, w *world) {
	c := w.newNotified(8)
	for queued := range 4 {
		for asked, want := range []int{0, min(1, queued), min(2, queued), min(3, queued), queued, queued} {
			if n, err := c.cq.Peek(asked); n != want || err != nil {
				t.Errorf("%d queued, peek %d: %d, %v", queued, asked, n, err)
			}
		}
		c.arrive(1, 0)
	}
	same(t, c.waitOn(c.cq, 4), ok(0), ok(0), ok(0), ok(0))
	_, err := c.cq.Peek(-1)
	refused(t, err, unix.EINVAL)
}

// Exactly one of the two completions must be named.
func notifyFlags(t *testing.T, w *world) {
	c := w.newNotified(8).cq
	for flags := range 256 {
		flags := verbs.CQNotifyFlags(flags)
		which := flags &^ verbs.CQReportMissedEvents
		_, err := c.ReqNotify(flags)
		if good := which == verbs.CQSolicited || which == verbs.CQNextComp; good {
			check(t, err)
		} else {
			refused(t, err, unix.EINVAL, "exactly one")
		}
	}
	for _, n := range []int{0, -1, c.Capacity() + 1} {
		refused(t, c.ReqNcompNotif(n), unix.EINVAL)
	}
	cq := w.a.newCQ(1)
	check(t, cq.Close())
	_, err := cq.ReqNotify(verbs.CQNextComp)
	refused(t, err, verbs.ErrObjectClosed)
	refused(t, cq.ReqNcompNotif(1), verbs.ErrObjectClosed)
	_, err = cq.Peek(1)
	refused(t, err, verbs.ErrObjectClosed)
}

// A CQ without channel cannot be armed, since nothing could come of it.
func notifyWithoutChannel(t *testing.T, w *world) {
	_, err := w.b.cq.ReqNotify(verbs.CQNextComp)
	refused(t, err, unix.EINVAL, "no completion channel")
	refused(t, w.b.cq.ReqNcompNotif(1), unix.EINVAL, "no completion channel")
	w.alive()
}

// Armed once, a queue has one event, however many completions come.
func oneEventForEachArming(t *testing.T, w *world) {
	c := w.newNotified(64)
	c.arrive(2, 0)
	c.noEvent() // nobody has asked
	for range 3 {
		c.arm(verbs.CQNextComp)
		c.arm(verbs.CQNextComp)
		c.noEvent() // those that are there are none
		c.arrive(3, 0)
		c.expectEvent()
		c.noEvent()
	}
}

// Armed for solicited completions, a queue keeps quiet until one comes, or one that has failed.
func notifySolicited(t *testing.T, w *world) {
	c := w.newNotified(64)
	for range 2 {
		c.arm(verbs.CQSolicited)
		c.arrive(3, 0)
		c.noEvent()
		c.arrive(1, verbs.SendSolicited)
		c.expectEvent()
		c.arrive(1, verbs.SendSolicited)
		c.noEvent()
	}
	c.arm(verbs.CQSolicited)
	c.receiveOn(c.qp, 0)
	to(t, c.qp, verbs.QPStateErr)
	c.expectEvent()
}

// Whichever was asked for first, the next completion is enough.
func nextOverSolicited(t *testing.T, w *world) {
	c := w.newNotified(64)
	for _, flags := range [][]verbs.CQNotifyFlags{{verbs.CQSolicited, verbs.CQNextComp}, {verbs.CQNextComp, verbs.CQSolicited}} {
		for _, one := range flags {
			c.arm(one)
		}
		c.arrive(1, 0)
		c.expectEvent()
		c.arrive(1, verbs.SendSolicited)
		c.noEvent() // both are over
	}
}

// The hint is given to those who ask, and is true while something is queued.
func missedEventsHint(t *testing.T, w *world) {
	c := w.newNotified(8)
	for _, flags := range []verbs.CQNotifyFlags{verbs.CQSolicited, verbs.CQNextComp} {
		if c.arm(flags | verbs.CQReportMissedEvents) {
			t.Error("missed, and nothing is there")
		}
		c.arrive(1, verbs.SendSolicited)
		c.expectEvent()
		if c.arm(flags) || !c.arm(flags|verbs.CQReportMissedEvents) {
			t.Error("not the hint")
		}
		c.waitOn(c.cq, 1)
		c.arrive(1, verbs.SendSolicited)
		c.expectEvent()
		c.waitOn(c.cq, 1)
	}
}

// The event comes when so many completions are queued, whenever they came.
func notifyNumber(t *testing.T, w *world) {
	c := w.newNotified(16)
	check(t, c.cq.ReqNcompNotif(3))
	c.arrive(2, 0)
	c.noEvent()
	c.waitOn(c.cq, 1)
	c.arrive(1, 0)
	c.noEvent() // two
	c.arrive(1, 0)
	c.expectEvent()
	c.arrive(1, 0)
	c.noEvent() // once
	check(t, c.cq.ReqNcompNotif(4))
	c.expectEvent() // they are there already
	check(t, c.cq.ReqNcompNotif(5))
	c.arm(verbs.CQNextComp)
	c.arrive(1, 0)
	c.expectEvent()
	c.noEvent() // one for both
}

// A wait takes no event of a channel, and causes none.
func waitAndNotify(t *testing.T, w *world) {
	c := w.newNotified(16)
	ctx := guard(t)
	wait := func() <-chan error {
		return waiting(ctx, t, 1, func(ctx context.Context) error {
			var wcs [4]verbs.WC
			_, err := c.cq.Wait(ctx, wcs[:])
			return err
		})
	}
	send := func() {
		c.receiveOn(c.qp, 0)
		c.peer.post(c.peer.send(1, c.ah, c.qp))
		c.peer.expect(ok(1))
	}
	for range 20 {
		done := wait()
		send()
		check(t, <-done)
		c.noEvent()
		c.arm(verbs.CQNextComp)
		done = wait()
		send()
		check(t, <-done)
		c.expectEvent()
	}
}

// An overrun has its event, like a completion that failed.
func overrunNotifies(t *testing.T, w *world) {
	c := w.newNotified(8)
	check(t, c.cq.Resize(4))
	c.arrive(4, 0)
	c.arm(verbs.CQSolicited)
	c.receiveOn(c.qp, 0)
	c.peer.post(c.peer.send(1, c.ah, c.qp))
	c.peer.expect(ok(1))
	c.expectEvent()
	c.waitOn(c.cq, 4)
	_, err := c.cq.ReqNotify(verbs.CQNextComp)
	refused(t, err, verbs.ErrCQOverrun, "arm CQ: ")
	refused(t, c.cq.ReqNcompNotif(1), verbs.ErrCQOverrun, "arm CQ: ")
	refused(t, c.cq.Resize(100), verbs.ErrCQOverrun)
}
