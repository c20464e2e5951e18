package verbstest

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
)

var drainTests = []rig.Test{
	{Name: "drain of a held queue", Run: drainOfAHeldQueue},
	{Name: "post, then close the context", Run: func(t *testing.T, w *rig.World) { postThen(t, w, w.A.Ctx.Close) }},
	{Name: "post, then close the queue pair", Run: func(t *testing.T, w *rig.World) { postThen(t, w, w.A.QP.Close) }},
	{Name: "post, then drain", Run: func(t *testing.T, w *rig.World) {
		postThen(t, w, func() error { return w.A.QP.Drain(rig.Guard(t)) })
	}},
}

// Drain does not wait for requests that the state holds back.
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
	rig.Check(t, a.QP.Drain(context.Background())) // flushed is carried out too
	a.Expect(rig.Flushed(2))
	rig.Check(t, a.QP.Close())
	rig.Refused(t, a.QP.Drain(context.Background()), verbs.ErrObjectClosed)
}

// postThen posts a list and does what waits for it, at once: all of it arrives.
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
