// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var stateTests = []rig.Test{
	{Name: "post by state", Run: postByState},
	{Name: "ERR flushes", Run: errFlushes},
	{Name: "SQD holds sends", Run: sqdHoldsSends},
	{Name: "SQE", Run: sqe},
	{Name: "RESET forgets", Run: resetForgets},
	{Name: "destroy with completions", Run: destroyWithCompletions},
}

// postByState checks the states in which posts are permitted: receives from INIT on, sends from RTS on.
func postByState(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	qp := a.NewQP(rig.DefaultCap())
	ah := a.AH(b.End.IPv4)
	rows := []struct {
		state      verbs.QPState
		enter      func()
		send, recv error
	}{
		{verbs.QPStateReset, func() {}, unix.EINVAL, unix.EINVAL},
		{verbs.QPStateInit, func() { rig.ToInit(t, qp) }, unix.EINVAL, nil},
		{verbs.QPStateRTR, func() { rig.To(t, qp, verbs.QPStateRTR) }, unix.EINVAL, nil},
		{verbs.QPStateRTS, func() { rig.ToRTS(t, qp, 5) }, nil, nil},
		{verbs.QPStateSQD, func() { rig.To(t, qp, verbs.QPStateSQD) }, nil, nil},
		{verbs.QPStateErr, func() { rig.To(t, qp, verbs.QPStateErr) }, nil, nil},
	}
	for _, row := range rows {
		row.enter()
		if got := qp.State(); got != row.state || rig.StateOf(t, qp) != row.state {
			t.Fatalf("state %v, want %v", got, row.state)
		}
		send := qp.PostSend([]verbs.SendWR{a.Send(1, ah, b.QP)})
		recv := qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{a.Piece(0, rig.SlotLen)}}})
		for _, pair := range [][2]error{{send, row.send}, {recv, row.recv}} {
			if got, want := pair[0], pair[1]; want == nil {
				rig.Check(t, got)
			} else {
				rig.Refused(t, got, want, row.state.String())
			}
		}
	}
}

// errFlushes checks that ERR flushes all outstanding requests in order, and requests that are posted later.
func errFlushes(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	b.Receive(0)
	rig.To(t, a.QP, verbs.QPStateSQD) // keeps sends in the queue
	for i := range 3 {
		wr := a.Send(uint64(10+i), ah, b.QP)
		wr.Flags = verbs.SendFlags(i%2) * verbs.SendSignaled // unsignaled requests have a flush completion too
		a.Post(wr)
	}
	a.Receive(20, 21)
	w.NothingElse()
	rig.To(t, a.QP, verbs.QPStateErr)
	a.Expect(rig.Flushed(10), rig.Flushed(11), rig.Flushed(12), rig.Flushed(20), rig.Flushed(21))
	a.Receive(22)
	a.Expect(rig.Flushed(22))
	a.Post(a.Send(13, ah, b.QP))
	a.Expect(rig.Flushed(13))
	w.NothingElse() // nothing was sent
}

// sqdHoldsSends checks that sends wait in SQD until RTS, while receives work.
func sqdHoldsSends(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	rig.To(t, a.QP, verbs.QPStateSQD)
	a.Post(a.Send(1, a.AH(b.End.IPv4), b.QP))
	b.Receive(0)
	a.Receive(5)
	b.Post(b.Send(2, b.AH(a.End.IPv4), a.QP))
	a.Expect(rig.OK(5))
	b.Expect(rig.OK(2))
	w.NothingElse()
	rig.To(t, a.QP, verbs.QPStateRTS)
	a.Expect(rig.OK(1))
	b.Expect(rig.OK(0))
	w.NothingElse()
}

// sqe checks that a local error moves the queue pair to SQE: later sends are flushed, receives still work, and RTS
// restarts the send queue.
func sqe(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	long := a.Send(2, ah, b.QP, a.MR.SGE(0, a.MTU()-1), a.Piece(20, 1), a.Piece(30, 1))
	b.Receive(0, 1)
	a.Post(a.Send(1, ah, b.QP), long, a.Send(3, ah, b.QP))
	a.Expect(rig.OK(1), rig.Ended(2, verbs.WCLocLenErr), rig.Flushed(3))
	b.Expect(rig.OK(0))
	if got := rig.StateOf(t, a.QP); got != verbs.QPStateSQE {
		t.Fatalf("state %v", got)
	}
	a.Receive(7)
	b.Post(b.Send(4, b.AH(a.End.IPv4), a.QP))
	a.Expect(rig.OK(7))
	b.Expect(rig.OK(4))
	a.Post(a.Send(5, ah, b.QP))
	a.Expect(rig.Flushed(5))
	wrong := a.QP.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateRTS}, verbs.QPAttrState|verbs.QPAttrCurState)
	rig.Refused(t, wrong, unix.EINVAL, "SQE")
	rig.Check(t, a.QP.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateSQE}, verbs.QPAttrState|verbs.QPAttrCurState))
	a.Post(a.Send(6, ah, b.QP))
	a.Expect(rig.OK(6))
	b.Expect(rig.OK(1))
	w.NothingElse()
}

// resetForgets checks that RESET discards requests without completions, and removes the queued ones from the CQ.
func resetForgets(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	neighbour := a.Active(rig.DefaultCap())
	for range 3 {
		for i := range rig.Depth {
			a.Post(a.Send(uint64(i), ah, b.QP))
		}
		rig.Check(t, neighbour.PostSend([]verbs.SendWR{a.Send(99, ah, b.QP)}))
		a.Receive(0, 1)
		rig.Drained(t, a.QP)
		rig.Drained(t, neighbour)
		rig.To(t, a.QP, verbs.QPStateReset)
		a.Expect(rig.OK(99))
		rig.Same(t, rig.Completions(t, a.CQ))
		rig.Check(t, a.QP.Activate(rig.TestQKey))
	}
	// All slots are free again.
	a.Receive(0, 1, 2, 3, 4, 5, 6, 7)
	for i := range rig.Depth {
		a.Post(a.Send(uint64(i), ah, b.QP))
	}
	a.Wait(rig.Depth)
	w.NothingElse()
}

// destroyWithCompletions checks that closing a queue pair discards its completions, so that a later queue pair with the
// same table entry does not get them.
func destroyWithCompletions(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	for range 20 {
		qp := a.Active(rig.DefaultCap())
		rig.Check(t, qp.PostSend([]verbs.SendWR{a.Send(1, ah, b.QP), a.Send(2, ah, b.QP)}))
		rig.Drained(t, qp)
		rig.Check(t, qp.Close())
		rig.Refused(t, qp.PostSend([]verbs.SendWR{a.Send(1, ah, b.QP)}), unix.EINVAL)
		rig.Refused(t, qp.Close(), unix.EINVAL, "closed already")
		next := a.Active(rig.DefaultCap())
		rig.Check(t, next.PostSend([]verbs.SendWR{a.Send(3, ah, b.QP)}))
		a.Expect(rig.OK(3))
		rig.Check(t, next.Close())
	}
	w.NothingElse()
}
