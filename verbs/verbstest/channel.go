package verbstest

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var channelTests = []test{
	{name: "several CQs on a channel", run: severalCQs},
	{name: "channel in use", run: channelInUse},
	{name: "unacknowledged events", run: unacknowledged},
	{name: "events of a closed CQ", run: eventsOfClosedCQ},
	{name: "get is cancelled", run: getCancelled},
	{name: "several readers of a channel", run: severalReaders},
	{name: "channel as a descriptor", run: channelDescriptor},
	{name: "full channel", run: fullChannel},
	{name: "close while getting", run: closeWhileGetting},
	{name: "device closed while getting", run: deviceClosedWhileGetting},
	{name: "CQ attributes", run: cqAttributes},
}

// Each event names its CQ, also by what the program gave it.
func severalCQs(t *testing.T, w *world) {
	first := w.newNotified(16)
	second := w.newNotified(16)
	third, err := w.b.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 16, Channel: first.channel, CQContext: "third"})
	check(t, err)
	if third.CQContext() != "third" || first.cq.CQContext() != nil {
		t.Error("not the program's value")
	}
	qp := w.b.newQPWith(verbs.QPInitAttr{SendCQ: third, RecvCQ: third, Cap: defaultCap()})
	check(t, qp.Activate(testQKey))
	for range 3 {
		first.arm(verbs.CQNextComp)
		second.arm(verbs.CQNextComp)
		_, err := third.ReqNotify(verbs.CQNextComp)
		check(t, err)
		check(t, qp.PostSend([]verbs.SendWR{w.b.send(7, w.b.ah(w.a.end.IPv4), w.a.qp)}))
		cq, err := first.channel.Get(guard(t))
		check(t, err)
		if cq != third {
			t.Errorf("not the CQ's event")
		}
		check(t, cq.AckEvents(1))
		first.arrive(1, 0)
		first.expectEvent()
		first.noEvent()
		second.arrive(1, 0)
		second.expectEvent()
		w.b.waitOn(third, 1)
	}
}

// A channel is not destroyed before its CQs.
func channelInUse(t *testing.T, w *world) {
	channel := w.a.newChannel()
	one, two := w.a.newCQOn(channel, 1), w.a.newCQOn(channel, 1)
	for _, cq := range []*verbs.CQ{one, two} {
		refused(t, channel.Close(), unix.EBUSY, "close them first")
		check(t, cq.Close())
	}
	check(t, channel.Close())
	refused(t, channel.Close(), verbs.ErrObjectClosed)
	_, err := w.a.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 1, Channel: channel})
	refused(t, err, verbs.ErrObjectClosed)
	_, err = w.a.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 1, Channel: w.b.newChannel()})
	refused(t, err, unix.EINVAL, "another context")
	_, err = channel.Get(guard(t))
	refused(t, err, verbs.ErrObjectClosed)
}

// A CQ is not destroyed before the events that the program got are acknowledged.
func unacknowledged(t *testing.T, w *world) {
	c := w.newNotified(16)
	for range 3 {
		c.arm(verbs.CQNextComp)
		c.arrive(1, 0)
		_, err := c.channel.Get(guard(t))
		check(t, err)
	}
	check(t, c.qp.Close())
	refused(t, c.cq.Close(), unix.EBUSY, "3 notifications")
	refused(t, c.cq.AckEvents(4), unix.EINVAL)
	refused(t, c.cq.AckEvents(-1), unix.EINVAL)
	check(t, c.cq.AckEvents(2))
	refused(t, c.cq.Close(), unix.EBUSY, ": 1 notification to")
	check(t, c.cq.AckEvents(1))
	check(t, c.cq.Close())
	refused(t, c.cq.AckEvents(0), verbs.ErrObjectClosed)
}

// Events that nobody has got do not keep a CQ, and do not come when it is closed.
func eventsOfClosedCQ(t *testing.T, w *world) {
	c := w.newNotified(16)
	c.arm(verbs.CQNextComp)
	c.arrive(1, 0)
	check(t, c.qp.Close())
	check(t, c.cq.Close())
	c.noEvent()
	_, err := c.channel.SyscallConn()
	check(t, err)
	check(t, c.channel.Close())
	_, err = c.channel.SyscallConn()
	refused(t, err, verbs.ErrObjectClosed, "completion channel")
}

// A cancelled Get gives its context's error, and loses no event.
func getCancelled(t *testing.T, w *world) {
	c := w.newNotified(slots)
	for range 20 {
		ctx, cancel := context.WithCancel(guard(t))
		done := waiting(ctx, t, 1, func(ctx context.Context) error { _, err := c.channel.Get(ctx); return err })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		_, err := c.channel.Get(ctx)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		c.arm(verbs.CQNextComp)
		c.arrive(1, 0)
		c.expectEvent()
		c.waitOn(c.cq, 1)
	}
}

// Several goroutines get: each event goes to one, and a cancelled one disturbs no other.
func severalReaders(t *testing.T, w *world) {
	c := w.newNotified(slots)
	const events = 200
	ctx, stop := context.WithCancel(guard(t))
	defer stop()
	got := make(chan struct{}, events)
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				own, cancel := context.WithCancel(ctx)
				if i == 0 {
					own, cancel = context.WithTimeout(ctx, 50*time.Microsecond)
				}
				cq, err := c.channel.Get(own)
				cancel()
				switch {
				case err == nil:
					got <- struct{}{}
					err = cq.AckEvents(1)
				case errors.Is(err, own.Err()):
					err = nil
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range events {
		c.arm(verbs.CQNextComp)
		c.arrive(1, 0)
		select {
		case <-got:
		case <-guard(t).Done():
			t.Fatal("an event is lost")
		}
		c.waitOn(c.cq, 1)
	}
	stop()
	readers.Wait()
}

// The descriptor is readable when there is an event, and gives records of 8 bytes.
func channelDescriptor(t *testing.T, w *world) {
	c := w.newNotified(16)
	conn, err := c.channel.SyscallConn()
	check(t, err)
	check(t, conn.Control(func(fd uintptr) {
		readable := func(timeout int) bool {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, timeout)
			for errors.Is(err, unix.EINTR) {
				n, err = unix.Poll(fds, timeout)
			}
			check(t, err)
			return n == 1
		}
		var record [9]byte
		if readable(0) {
			t.Error("readable without an event")
		}
		if _, err := unix.Read(int(fd), record[:]); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("read of an empty channel: %v", err)
		}
		for range 3 {
			c.arm(verbs.CQNextComp)
			c.arrive(1, 0)
			if !readable(int(waitTimeout.Milliseconds())) {
				t.Fatal("no event")
			}
			n, err := unix.Read(int(fd), record[:])
			if id := binary.NativeEndian.Uint64(record[:]); n != 8 || id != c.cq.EventID() || err != nil {
				t.Errorf("read %d bytes, CQ %d, %v; want CQ %d", n, id, err, c.cq.EventID())
			}
		}
	}))
}

// A program that arms and never reads loses no event: those for which there is no room come when it
// reads at last. Meanwhile the card is not held up.
func fullChannel(t *testing.T, w *world) {
	const events = 20_000 // more than a pipe has room for
	s := w.b
	channel := s.newChannel()
	cq := s.newCQOn(channel, 8)
	qp := s.newQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxRecvWR: 1}})
	toInit(t, qp)
	to(t, qp, verbs.QPStateErr)
	for range events {
		_, err := cq.ReqNotify(verbs.CQNextComp)
		check(t, err)
		check(t, qp.PostRecv([]verbs.RecvWR{{}}))
		s.waitOn(cq, 1)
		// The completion is seen before its event is sent; armed in between, the queue would have one
		// event for both. A command waits until the round has ended.
		_, _, err = qp.Query()
		check(t, err)
	}
	w.alive()
	for range events {
		got, err := channel.Get(guard(t))
		check(t, err)
		if got != cq {
			t.Fatal("not the CQ's event")
		}
	}
	check(t, cq.AckEvents(events))
	check(t, noEventOf(t, channel, s))
}

// Closing a channel ends the calls that wait on it.
func closeWhileGetting(t *testing.T, w *world) {
	channel := w.a.newChannel()
	done := waiting(guard(t), t, 3, func(ctx context.Context) error { _, err := channel.Get(ctx); return err })
	check(t, channel.Close())
	for range 3 {
		refused(t, <-done, verbs.ErrObjectClosed)
	}
}

// So does closing the device.
func deviceClosedWhileGetting(t *testing.T, w *world) {
	channel := w.a.newChannel()
	done := waiting(guard(t), t, 3, func(ctx context.Context) error { _, err := channel.Get(ctx); return err })
	check(t, w.a.ctx.Close())
	for range 3 {
		refused(t, <-done, verbs.ErrClosed)
	}
	_, err := channel.Get(guard(t))
	refused(t, err, verbs.ErrClosed)
	refused(t, channel.Close(), verbs.ErrClosed)
}

// What a CQ is made with is checked, and what cannot be fulfilled is refused.
func cqAttributes(t *testing.T, w *world) {
	create := func(change func(a *verbs.CQInitAttr)) error {
		attr := verbs.CQInitAttr{Entries: 1}
		change(&attr)
		cq, err := w.a.ctx.CreateCQEx(&attr)
		if err == nil {
			err = cq.Close()
		}
		return err
	}
	const always = verbs.WCExWithByteLen | verbs.WCExWithImm | verbs.WCExWithQPNum | verbs.WCExWithSrcQP | verbs.WCExWithSLID |
		verbs.WCExWithSL | verbs.WCExWithDLIDPathBits | verbs.WCExWithCVLAN
	check(t, create(func(a *verbs.CQInitAttr) { a.WCFlags, a.Flags = always, verbs.CQSingleThreaded }))
	_, nothing := w.a.ctx.CreateCQEx(nil)
	refusals(t, []refusal{
		{"nil", nothing, unix.EINVAL, "nil"},
		{"no entries", create(func(a *verbs.CQInitAttr) { a.Entries = 0 }), unix.EINVAL, "1 to"},
		{"vector 1", create(func(a *verbs.CQInitAttr) { a.CompVector = 1 }), unix.EINVAL, "vector"},
		{"vector -1", create(func(a *verbs.CQInitAttr) { a.CompVector = -1 }), unix.EINVAL, "vector"},
		{"flow tags", create(func(a *verbs.CQInitAttr) { a.WCFlags = verbs.WCExWithFlowTag }), unix.EOPNOTSUPP, "0x200"},
		{"tag matching", create(func(a *verbs.CQInitAttr) { a.WCFlags = verbs.WCExWithTMInfo }), unix.EOPNOTSUPP, "0x400"},
		{"what nobody knows", create(func(a *verbs.CQInitAttr) { a.WCFlags = 1 << 63 }), unix.EOPNOTSUPP, ""},
		{"ignored overrun", create(func(a *verbs.CQInitAttr) { a.Flags = verbs.CQIgnoreOverrun }), unix.EOPNOTSUPP, "overrun"},
	})
}
