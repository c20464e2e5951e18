// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/compat"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var drainTests = []rig.Test{
	{Name: "drain of a held queue", Run: drainOfAHeldQueue},
	{Name: "drain to ERR", Run: drainToErr},
	{Name: "drain without a poller", Run: drainUnpolled},
	{Name: "post, then close the context", Run: func(t *testing.T, w *rig.World) { postThen(t, w, w.A.Ctx.Close) }},
	{Name: "post, then close the queue pair", Run: func(t *testing.T, w *rig.World) { postThen(t, w, w.A.QP.Close) }},
	{Name: "post, then drain", Run: func(t *testing.T, w *rig.World) {
		postThen(t, w, func() error { return w.A.QP.Drain(rig.Guard(t)) })
	}},
}

// Drain does not wait for requests that are not executed in the current state.
func drainOfAHeldQueue(t *testing.T, w *rig.World) {
	a := w.A
	ah := a.AH(w.B.End.IPv4)
	rig.To(t, a.QP, verbs.QPStateSQD)
	a.Post(a.Send(1, ah, w.B.QP))
	rig.Refused(t, a.QP.Drain(context.Background()), verbs.ErrState, "SQD", "1 send")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.QP.Drain(ended); !errors.Is(err, verbs.ErrState) {
		t.Errorf("%v", err)
	}
	rig.To(t, a.QP, verbs.QPStateRTS)
	rig.Check(t, a.QP.Drain(context.Background()))
	a.Expect(rig.OK(1))
	rig.Check(t, a.QP.Drain(context.Background()))
	rig.To(t, a.QP, verbs.QPStateErr)
	a.Post(a.Send(2, ah, w.B.QP))
	rig.Check(t, a.QP.Drain(context.Background())) // flushed requests count as executed
	a.Expect(rig.Flushed(2))
	rig.Check(t, a.QP.Close())
	rig.Refused(t, a.QP.Drain(context.Background()), verbs.ErrObjectClosed)
}

// postThen posts a list and immediately calls end, which waits for the list. All messages arrive.
func postThen(t *testing.T, w *rig.World, end func() error) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	var list []verbs.SendWR
	for i := range rig.Depth {
		b.Receive(i)
		wr := a.Send(uint64(i), ah, b.QP, a.Piece(0, 10))
		wr.Flags = 0
		list = append(list, wr)
	}
	a.Post(list...)
	rig.Check(t, end())
	for i, wc := range b.Wait(rig.Depth) {
		rig.Same(t, []verbs.WC{wc}, rig.OK(uint64(i)))
	}
}

// DrainQP flushes all requests, and returns when all of their completions have been polled.
func drainToErr(t *testing.T, w *rig.World) {
	a := w.A
	drains := map[string]func(context.Context, *verbs.QP) error{"SQ": kernel.DrainSQ, "RQ": kernel.DrainRQ, "QP": kernel.DrainQP}
	for name, drain := range drains {
		qp := a.Active(rig.DefaultCap())
		held := a.Send(1, a.AH(w.B.End.IPv4), w.B.QP)
		rig.To(t, qp, verbs.QPStateSQD)
		var want []rig.Outcome
		for i := range rig.Depth {
			a.ReceiveOn(qp, i)
			want = append(want, rig.Flushed(uint64(i)))
		}
		held.Flags = 0 // flushed although it is unsignaled
		rig.Check(t, qp.PostSend([]verbs.SendWR{held, held}))
		done := rig.Waiting(rig.Guard(t), t, 1, func(ctx context.Context) error { return drain(ctx, qp) })
		var flushed []verbs.WC
		for len(flushed) < rig.Depth+2 {
			flushed = append(flushed, a.Wait(1)...)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var recvs []verbs.WC
		for _, wc := range flushed {
			if wc.Opcode.IsRecv() {
				recvs = append(recvs, wc)
			}
		}
		rig.Same(t, recvs, want...)
		if attr, _, err := compat.QueryQP(qp, verbs.QPAttrState); attr.State != verbs.QPStateErr || err != nil {
			t.Errorf("%s: %v, %v", name, attr.State, err)
		}
		rig.Check(t, drain(rig.Guard(t), qp)) // no request is outstanding
		rig.Check(t, qp.Close())
		rig.Refused(t, drain(rig.Guard(t), qp), unix.EINVAL)
	}
	fresh := a.NewQP(rig.DefaultCap())
	rig.Refused(t, kernel.DrainQP(rig.Guard(t), fresh), verbs.ErrState) // RESET cannot change to ERR
	withSRQ := a.NewQPWith(verbs.QPInitAttr{SendCQ: a.CQ, RecvCQ: a.CQ, SRQ: a.SRQ, Cap: rig.DefaultCap()})
	rig.Check(t, withSRQ.Activate(rig.TestQKey))
	rig.Refused(t, kernel.DrainRQ(rig.Guard(t), withSRQ), unix.EINVAL, "SRQ")
	rig.Check(t, kernel.DrainQP(rig.Guard(t), withSRQ))
}

// As in the kernel, a drain ends with its context if no program polls.
func drainUnpolled(t *testing.T, w *rig.World) {
	qp := w.A.Active(rig.DefaultCap())
	w.A.ReceiveOn(qp, 0)
	ctx, cancel := context.WithCancel(rig.Guard(t))
	done := rig.Waiting(ctx, t, 1, func(ctx context.Context) error { return kernel.DrainRQ(ctx, qp) })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.A.Expect(rig.Flushed(0))
	rig.Check(t, kernel.DrainRQ(rig.Guard(t), qp))
}
