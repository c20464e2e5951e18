package verbstest

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
)

var drainTests = []test{
	{name: "drain of a held queue", run: drainOfAHeldQueue},
	{name: "post, then close the context", run: func(t *testing.T, w *world) { postThen(t, w, w.a.ctx.Close) }},
	{name: "post, then close the queue pair", run: func(t *testing.T, w *world) { postThen(t, w, w.a.qp.Close) }},
	{name: "post, then drain", run: func(t *testing.T, w *world) {
		postThen(t, w, func() error { return w.a.qp.Drain(guard(t)) })
	}},
}

// Drain does not wait for requests that the state holds back.
func drainOfAHeldQueue(t *testing.T, w *world) {
	a := w.a
	ah := a.ah(w.b.end.IPv4)
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, ah, w.b.qp))
	refused(t, a.qp.Drain(context.Background()), verbs.ErrState, "SQD", "1 send")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := a.qp.Drain(ended); !errors.Is(err, verbs.ErrState) {
		t.Errorf("%v", err)
	}
	to(t, a.qp, verbs.QPStateRTS)
	check(t, a.qp.Drain(context.Background()))
	a.expect(ok(1))
	check(t, a.qp.Drain(context.Background()))
	to(t, a.qp, verbs.QPStateErr)
	a.post(a.send(2, ah, w.b.qp))
	check(t, a.qp.Drain(context.Background())) // flushed is carried out too
	a.expect(flushed(2))
	check(t, a.qp.Close())
	refused(t, a.qp.Drain(context.Background()), verbs.ErrObjectClosed)
}

// postThen posts a list and does what waits for it, at once: all of it arrives.
func postThen(t *testing.T, w *world, end func() error) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	var list []verbs.SendWR
	for i := range depth {
		b.receive(i)
		wr := a.send(uint64(i), ah, b.qp, a.piece(0, 10))
		wr.Flags = 0
		list = append(list, wr)
	}
	a.post(list...)
	check(t, end())
	for i, wc := range b.wait(depth) {
		same(t, []verbs.WC{wc}, ok(uint64(i)))
	}
}
