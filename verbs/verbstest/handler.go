// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var handlerTests = []rig.Test{
	{Name: "completion handler", Run: completionHandler},
	{Name: "handlers of events", Run: eventHandlers},
	{Name: "handler of an SRQ", Run: srqHandler},
	{Name: "handler closes its object", Run: handlerCloses},
	{Name: "closed while its handler is called", Run: closedWhileNotified},
	{Name: "handlers and waiting readers", Run: handlersAndReaders},
	{Name: "events as a descriptor", Run: eventDescriptor},
	{Name: "descriptor ends", Run: descriptorEnds},
}

// oneAtATime detects concurrent calls.
type oneAtATime struct{ running atomic.Int32 }

func (o *oneAtATime) call(t *testing.T, body func()) {
	if o.running.Add(1) != 1 {
		t.Error("called concurrently")
	}
	body()
	o.running.Add(-1)
}

// The handler is called once for each arming, and may arm, poll and post.
func completionHandler(t *testing.T, w *rig.World) {
	for _, vector := range []int{0, w.B.Ctx.NumCompVectors() - 1} {
		var once oneAtATime
		got := make(chan uint64, 64)
		cq, err := w.B.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 16, CompVector: vector, CQContext: "mine", CompHandler: func(cq *verbs.CQ) {
			once.call(t, func() {
				if cq.CQContext() != "mine" {
					t.Error("not the program's value")
				}
				_, err := cq.ReqNotify(verbs.CQNextComp)
				rig.Check(t, err)
				for _, wc := range rig.Completions(t, cq) {
					got <- wc.ID
				}
			})
		}})
		rig.Check(t, err)
		_, err = cq.ReqNotify(verbs.CQNextComp)
		rig.Check(t, err)
		qp := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: cq, Cap: rig.DefaultCap()})
		rig.Check(t, qp.Activate(rig.TestQKey))
		ah := w.A.AH(w.B.End.IPv4)
		for i := range 20 {
			w.B.ReceiveOn(qp, i)
			w.A.Post(w.A.Send(1, ah, qp))
			w.A.Expect(rig.OK(1))
			if id := rig.Get(t, got); id != uint64(i) {
				t.Fatalf("completion %d, want %d", id, i)
			}
		}
		rig.Check(t, errors.Join(qp.Close(), cq.Close()))
	}
	_, err := w.B.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 1, Channel: w.B.NewChannel(), CompHandler: func(*verbs.CQ) {}})
	rig.Refused(t, err, unix.EINVAL, "not both")
	_, err = w.B.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 1, CompVector: w.B.Ctx.NumCompVectors(), CompHandler: func(*verbs.CQ) {}})
	rig.Refused(t, err, unix.EINVAL, "vector")
}

// Events of an object with a handler are passed to the handler, in order. Other events are returned by GetAsyncEvent.
func eventHandlers(t *testing.T, w *rig.World) {
	var once oneAtATime
	events := make(chan verbs.AsyncEvent, 8)
	handler := func(e verbs.AsyncEvent) { once.call(t, func() { events <- e }) }
	cq, err := w.B.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 4, EventHandler: handler})
	rig.Check(t, err)
	capacity := rig.DefaultCap()
	capacity.MaxRecvWR = uint32(cq.Capacity()) + 2
	handled := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: cq, Cap: capacity, EventHandler: handler, QPContext: 7})
	read := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: cq, Cap: capacity})
	if handled.QPContext() != 7 || read.QPContext() != nil {
		t.Error("not the program's value")
	}
	rig.Check(t, errors.Join(handled.Activate(rig.TestQKey), read.Activate(rig.TestQKey)))
	w.Overrun(handled, cq, 1)
	for _, want := range []verbs.AsyncEvent{cqErr(cq), qpFatal(handled)} {
		if got := rig.Get(t, events); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	w.B.ExpectEvents(qpFatal(read))
	w.Settle()
	w.B.NoEvent()
	if len(events) != 0 {
		t.Errorf("duplicate event: %+v", <-events)
	}
	rig.Check(t, errors.Join(handled.Close(), read.Close(), cq.Close()))
}

// An SRQ's handler receives its limit event.
func srqHandler(t *testing.T, w *rig.World) {
	events := make(chan verbs.AsyncEvent, 8)
	srq, err := w.B.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4, SRQContext: "mine", EventHandler: func(e verbs.AsyncEvent) { events <- e }})
	rig.Check(t, err)
	rig.Check(t, srq.Modify(&verbs.SRQAttr{Limit: 1}, verbs.SRQLimit)) // no receive is queued, so the limit is reached immediately
	want := verbs.AsyncEvent{Type: verbs.EventSRQLimitReached, SRQ: srq}
	if got := rig.Get(t, events); got != want || srq.SRQContext() != "mine" {
		t.Errorf("%+v, %v", got, srq.SRQContext())
	}
	w.B.NoEvent()
}

// A handler may close the object that it is called for.
func handlerCloses(t *testing.T, w *rig.World) {
	closed := make(chan error, 1)
	srq, err := w.B.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4, EventHandler: func(e verbs.AsyncEvent) { closed <- e.SRQ.Close() }})
	rig.Check(t, err)
	rig.Check(t, srq.Modify(&verbs.SRQAttr{Limit: 1}, verbs.SRQLimit))
	rig.Check(t, rig.Get(t, closed))
	cq, err := w.B.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 4, CompHandler: func(cq *verbs.CQ) { closed <- cq.Close() }})
	rig.Check(t, err)
	qp := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: cq, Cap: rig.DefaultCap()})
	_, err = cq.ReqNotify(verbs.CQNextComp)
	rig.Check(t, err)
	rig.ToInit(t, qp)
	w.B.ReceiveOn(qp, 0)
	rig.To(t, qp, verbs.QPStateErr) // flushes the receive
	rig.Refused(t, rig.Get(t, closed), unix.EBUSY)
	w.Alive()
}

// A CQ with a handler can be closed at any time, because the program has no events to acknowledge.
func closedWhileNotified(t *testing.T, w *rig.World) {
	for range 500 {
		cq, err := w.B.Ctx.CreateCQEx(&verbs.CQInitAttr{Entries: 4, CompHandler: func(*verbs.CQ) {}})
		rig.Check(t, err)
		qp := w.B.NewQPWith(verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: cq, Cap: rig.DefaultCap()})
		_, err = cq.ReqNotify(verbs.CQNextComp)
		rig.Check(t, err)
		rig.ToInit(t, qp)
		w.B.ReceiveOn(qp, 0)
		rig.To(t, qp, verbs.QPStateErr) // flushes the receive
		rig.Check(t, errors.Join(qp.Close(), cq.Close()))
	}
}

// A reader that already waits continues to receive the other events when the first handler is set.
func handlersAndReaders(t *testing.T, w *rig.World) {
	srq, err := w.B.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4})
	rig.Check(t, err)
	got := make(chan verbs.AsyncEvent, 1)
	done := rig.Waiting(rig.Guard(t), t, 1, func(ctx context.Context) error {
		event, err := w.B.Ctx.GetAsyncEvent(ctx)
		got <- event
		return err
	})
	events := make(chan verbs.AsyncEvent, 8)
	handled, err := w.B.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4, EventHandler: func(e verbs.AsyncEvent) { events <- e }})
	rig.Check(t, err)
	rig.Check(t, handled.Modify(&verbs.SRQAttr{Limit: 1}, verbs.SRQLimit))
	if event := rig.Get(t, events); event.SRQ != handled {
		t.Errorf("%+v", event)
	}
	rig.Check(t, srq.Modify(&verbs.SRQAttr{Limit: 1}, verbs.SRQLimit))
	rig.Check(t, <-done)
	if event := <-got; event.SRQ != srq {
		t.Errorf("%+v", event)
	}
}

// readable polls a descriptor.
func readable(t *testing.T, fd uintptr, timeout int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, timeout)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(fds, timeout)
	}
	rig.Check(t, err)
	return n == 1
}

// The descriptor is readable while there is an event, even if its byte has been read.
func eventDescriptor(t *testing.T, w *rig.World) {
	conn, err := w.B.Ctx.SyscallConn()
	rig.Check(t, err)
	now, cancel := context.WithCancel(context.Background())
	cancel()
	rig.Check(t, conn.Control(func(fd uintptr) {
		srq, err := w.B.PD.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 4})
		rig.Check(t, err)
		for round := range 3 {
			if readable(t, fd, 0) {
				t.Error("readable without an event")
			}
			rig.Check(t, srq.Modify(&verbs.SRQAttr{Limit: 1}, verbs.SRQLimit))
			if !readable(t, fd, int(rig.WaitTimeout.Milliseconds())) {
				t.Fatal("no event")
			}
			if round == 1 {
				if n, err := unix.Read(int(fd), make([]byte, 2)); n != 1 || err != nil {
					t.Errorf("read %d bytes, %v", n, err)
				}
			}
			event, err := w.B.Ctx.GetAsyncEvent(now) // without waiting
			if event.SRQ != srq || err != nil {
				t.Errorf("%+v, %v", event, err)
			}
		}
		rig.Check(t, srq.Modify(&verbs.SRQAttr{Limit: 1}, verbs.SRQLimit))
		if !readable(t, fd, int(rig.WaitTimeout.Milliseconds())) {
			t.Fatal("no event")
		}
		rig.Check(t, srq.Close())
		if readable(t, fd, 0) {
			t.Error("the descriptor is readable for an event of a closed object")
		}
	}))
	w.B.NoEvent()
}

// Polling programs are woken when the device is closed.
func descriptorEnds(t *testing.T, w *rig.World) {
	conn, err := w.B.Ctx.SyscallConn()
	rig.Check(t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- conn.Read(func(fd uintptr) bool {
			n, _ := unix.Read(int(fd), make([]byte, 1))
			return n == 0
		})
	}()
	rig.Check(t, w.B.Ctx.Close())
	rig.Get(t, ended) // end of file, or an error because the descriptor is closed
	_, err = w.B.Ctx.SyscallConn()
	rig.Refused(t, err, verbs.ErrClosed)
}
