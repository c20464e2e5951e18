// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var channelTests = []rig.Test{
	{Name: "several CQs on a channel", Run: severalCQs},
	{Name: "channel in use", Run: channelInUse},
	{Name: "unacknowledged events", Run: unacknowledged},
	{Name: "events of a closed CQ", Run: eventsOfClosedCQ},
	{Name: "get is cancelled", Run: getCancelled},
	{Name: "several readers of a channel", Run: severalReaders},
	{Name: "channel as a descriptor", Run: channelDescriptor},
	{Name: "full channel", Run: fullChannel},
	{Name: "close while getting", Run: closeWhileGetting},
	{Name: "device closed while getting", Run: deviceClosedWhileGetting},
	{Name: "CQ attributes", Run: cqAttributes},
}

// Each event identifies its CQ, also by CQContext.
func severalCQs(t *testing.T, w *rig.World) {
	first := w.NewNotified(16)
	second := w.NewNotified(16)
	third, err := w.B.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 16, Channel: first.Channel, CQContext: "third"})
	rig.Check(t, err)
	if third.CQContext() != "third" || first.CQ.CQContext() != nil {
		t.Error("not the program's value")
	}
	qp := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: third, RecvCQ: third, Cap: rig.DefaultCap()})
	rig.Check(t, qp.Activate(rig.TestQKey))
	for range 3 {
		first.Arm(verbs.CQNextComp)
		second.Arm(verbs.CQNextComp)
		_, err := third.ReqNotify(verbs.CQNextComp)
		rig.Check(t, err)
		rig.Check(t, qp.PostSend([]verbs.SendWR{w.B.Send(7, w.B.AH(w.A.End.IPv4), w.A.QP)}))
		cq, err := first.Channel.Get(rig.Guard(t))
		rig.Check(t, err)
		if cq != third {
			t.Errorf("not the CQ's event")
		}
		rig.Check(t, cq.AckEvents(1))
		first.Arrive(1, 0)
		first.ExpectEvent()
		first.NoEvent()
		second.Arrive(1, 0)
		second.ExpectEvent()
		w.B.WaitOn(third, 1)
	}
}

// A channel is not destroyed before its CQs.
func channelInUse(t *testing.T, w *rig.World) {
	channel := w.A.NewChannel()
	one, two := w.A.NewCQOn(channel, 1), w.A.NewCQOn(channel, 1)
	for _, cq := range []*verbs.CQ{one, two} {
		rig.Refused(t, channel.Close(), unix.EBUSY, "close them first")
		rig.Check(t, cq.Close())
	}
	rig.Check(t, channel.Close())
	rig.Refused(t, channel.Close(), verbs.ErrObjectClosed)
	_, err := w.A.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 1, Channel: channel})
	rig.Refused(t, err, verbs.ErrObjectClosed)
	_, err = w.A.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 1, Channel: w.B.NewChannel()})
	rig.Refused(t, err, unix.EINVAL, "another context")
	_, err = channel.Get(rig.Guard(t))
	rig.Refused(t, err, verbs.ErrObjectClosed)
}

// A CQ is not destroyed before the events that the program has received are acknowledged.
func unacknowledged(t *testing.T, w *rig.World) {
	c := w.NewNotified(16)
	for range 3 {
		c.Arm(verbs.CQNextComp)
		c.Arrive(1, 0)
		_, err := c.Channel.Get(rig.Guard(t))
		rig.Check(t, err)
	}
	rig.Check(t, c.QP.Close())
	rig.Refused(t, c.CQ.Close(), unix.EBUSY, "3 notifications")
	rig.Refused(t, c.CQ.AckEvents(4), unix.EINVAL)
	rig.Refused(t, c.CQ.AckEvents(-1), unix.EINVAL)
	rig.Check(t, c.CQ.AckEvents(2))
	rig.Refused(t, c.CQ.Close(), unix.EBUSY, ": 1 notification to")
	rig.Check(t, c.CQ.AckEvents(1))
	rig.Check(t, c.CQ.Close())
	rig.Refused(t, c.CQ.AckEvents(0), verbs.ErrObjectClosed)
}

// Unread events do not keep a CQ open, and are not delivered after it was closed.
func eventsOfClosedCQ(t *testing.T, w *rig.World) {
	c := w.NewNotified(16)
	c.Arm(verbs.CQNextComp)
	c.Arrive(1, 0)
	rig.Check(t, c.QP.Close())
	rig.Check(t, c.CQ.Close())
	c.NoEvent()
	_, err := c.Channel.SyscallConn()
	rig.Check(t, err)
	rig.Check(t, c.Channel.Close())
	_, err = c.Channel.SyscallConn()
	rig.Refused(t, err, verbs.ErrObjectClosed, "completion channel")
}

// A cancelled Get returns the error of its context, and loses no event.
func getCancelled(t *testing.T, w *rig.World) {
	c := w.NewNotified(rig.Slots)
	for range 20 {
		ctx, cancel := context.WithCancel(rig.Guard(t))
		done := rig.Waiting(ctx, t, 1, func(ctx context.Context) error { _, err := c.Channel.Get(ctx); return err })
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		_, err := c.Channel.Get(ctx)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		c.Arm(verbs.CQNextComp)
		c.Arrive(1, 0)
		c.ExpectEvent()
		c.WaitOn(c.CQ, 1)
	}
}

// Several goroutines call Get: each event is returned to one of them, and cancelling one does not affect the others.
func severalReaders(t *testing.T, w *rig.World) {
	c := w.NewNotified(rig.Slots)
	const events = 200
	ctx, stop := context.WithCancel(rig.Guard(t))
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
				cq, err := c.Channel.Get(own)
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
		c.Arm(verbs.CQNextComp)
		c.Arrive(1, 0)
		select {
		case <-got:
		case <-rig.Guard(t).Done():
			t.Fatal("an event was lost")
		}
		c.WaitOn(c.CQ, 1)
	}
	stop()
	readers.Wait()
}

// The descriptor is readable while an event is pending, and contains records of 8 bytes.
func channelDescriptor(t *testing.T, w *rig.World) {
	c := w.NewNotified(16)
	conn, err := c.Channel.SyscallConn()
	rig.Check(t, err)
	rig.Check(t, conn.Control(func(fd uintptr) {
		var record [9]byte
		if readable(t, fd, 0) {
			t.Error("readable without an event")
		}
		if _, err := unix.Read(int(fd), record[:]); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("read of an empty channel: %v", err)
		}
		for range 3 {
			c.Arm(verbs.CQNextComp)
			c.Arrive(1, 0)
			if !readable(t, fd, int(rig.WaitTimeout.Milliseconds())) {
				t.Fatal("no event")
			}
			n, err := unix.Read(int(fd), record[:])
			if id := binary.NativeEndian.Uint64(record[:]); n != 8 || id != c.CQ.EventID() || err != nil {
				t.Errorf("read %d bytes, CQ %d, %v; want CQ %d", n, id, err, c.CQ.EventID())
			}
		}
	}))
}

// A program that arms and does not read loses no event: events that exceed the capacity are delivered when it reads.
// They do not block the card.
func fullChannel(t *testing.T, w *rig.World) {
	const events = 10_000 // exceeds the capacity of a pipe: 8192
	s := w.B
	channel := s.NewChannel()
	cq := s.NewCQOn(channel, 8)
	qp := s.NewQPWith(verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxRecvWR: 1}})
	rig.ToInit(t, qp)
	rig.To(t, qp, verbs.QPStateErr)
	for range events {
		_, err := cq.ReqNotify(verbs.CQNextComp)
		rig.Check(t, err)
		rig.Check(t, qp.PostRecv([]verbs.RecvWR{{}}))
		s.WaitOn(cq, 1)
		// The completion is visible before its event is sent. If the queue were armed in between, both completions
		// would have one event. A command waits until the round has ended.
		_, _, err = qp.Query()
		rig.Check(t, err)
	}
	w.Alive()
	for range events {
		got, err := channel.Get(rig.Guard(t))
		rig.Check(t, err)
		if got != cq {
			t.Fatal("not the CQ's event")
		}
	}
	rig.Check(t, cq.AckEvents(events))
	rig.Check(t, rig.NoEventOf(t, channel, s))
}

// Closing a channel ends the calls that wait for its events.
func closeWhileGetting(t *testing.T, w *rig.World) {
	channel := w.A.NewChannel()
	done := rig.Waiting(rig.Guard(t), t, 3, func(ctx context.Context) error { _, err := channel.Get(ctx); return err })
	rig.Check(t, channel.Close())
	for range 3 {
		rig.Refused(t, <-done, verbs.ErrObjectClosed)
	}
}

// Closing the device ends the calls that wait for events of a channel.
func deviceClosedWhileGetting(t *testing.T, w *rig.World) {
	channel := w.A.NewChannel()
	done := rig.Waiting(rig.Guard(t), t, 3, func(ctx context.Context) error { _, err := channel.Get(ctx); return err })
	rig.Check(t, w.A.Ctx.Close())
	for range 3 {
		rig.Refused(t, <-done, verbs.ErrClosed)
	}
	_, err := channel.Get(rig.Guard(t))
	rig.Refused(t, err, verbs.ErrClosed)
	rig.Refused(t, channel.Close(), verbs.ErrClosed)
}

// Invalid and unsupported attributes of a new CQ are rejected.
func cqAttributes(t *testing.T, w *rig.World) {
	create := func(change func(a *verbs.CQInitAttr)) error {
		attr := verbs.CQInitAttr{Entries: 1}
		change(&attr)
		cq, err := w.A.Ctx.CreateCQEx(&attr)
		if err == nil {
			err = cq.Close()
		}
		return err
	}
	const always = ib.WCExWithByteLen | ib.WCExWithImm | ib.WCExWithQPNum | ib.WCExWithSrcQP | ib.WCExWithSLID |
		ib.WCExWithSL | ib.WCExWithDLIDPathBits | ib.WCExWithCVLAN
	rig.Check(t, create(func(a *verbs.CQInitAttr) { a.WCFlags, a.Flags = always, verbs.CQSingleThreaded }))
	_, nothing := w.A.Ctx.CreateCQEx(nil)
	refusals(t, []refusal{
		{"nil", nothing, unix.EINVAL, "nil"},
		{"no entries", create(func(a *verbs.CQInitAttr) { a.Entries = 0 }), unix.EINVAL, "1 to"},
		{"vector 8", create(func(a *verbs.CQInitAttr) { a.CompVector = w.A.Ctx.NumCompVectors() }), unix.EINVAL, "vector"},
		{"vector -1", create(func(a *verbs.CQInitAttr) { a.CompVector = -1 }), unix.EINVAL, "vector"},
		{"flow tags", create(func(a *verbs.CQInitAttr) { a.WCFlags = ib.WCExWithFlowTag }), unix.EOPNOTSUPP, "0x200"},
		{"tag matching", create(func(a *verbs.CQInitAttr) { a.WCFlags = ib.WCExWithTMInfo }), unix.EOPNOTSUPP, "0x400"},
		{"an unknown flag", create(func(a *verbs.CQInitAttr) { a.WCFlags = 1 << 63 }), unix.EOPNOTSUPP, ""},
		{"ignored overrun", create(func(a *verbs.CQInitAttr) { a.Flags = verbs.CQIgnoreOverrun }), unix.EOPNOTSUPP, "overrun"},
	})
}
