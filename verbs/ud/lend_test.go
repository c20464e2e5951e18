// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"context"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/ud"
)

// flood sends n messages, and waits until they are sent.
func flood(t testing.TB, from *ud.Endpoint, to ud.Addr, n int) {
	t.Helper()
	for i := range n {
		check(t, from.Send(guard(t), to, []byte(text(i))))
	}
	check(t, from.Flush(guard(t)))
}

func TestBuffersKept(t *testing.T) {
	a, b := pair(t, ud.Options{RecvDepth: 8})
	var kept []ud.Message
	for i := range 8 {
		check(t, a.Send(guard(t), b.LocalAddr(), []byte(text(i))))
		kept = append(kept, receive(t, b))
	}
	_, err := b.Recv(guard(t))
	refused(t, err, ud.ErrKept)
	if s := b.Stats(); s.Lent != 8 || s.MostLent != 8 || s.Starved != 1 || s.Received != 8 {
		t.Errorf("%+v", s)
	}
	flood(t, a, b.LocalAddr(), 3)
	eventually(t, "the drops for lack of a buffer", func() bool { return drops(t, b)["engine drop_no_receive"] == 3 })
	for i, m := range kept {
		if string(m.Data) != text(i) {
			t.Errorf("message %d: its data changed to %q", i, m.Data)
		}
	}
	b.Release(kept)
	if s := b.Stats(); s.Lent != 0 || kept[0].Data != nil {
		t.Errorf("after release: got %+v and %q", s, kept[0].Data)
	}
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("room again")))
	said(t, b, "room again")
}

func drops(t testing.TB, e *ud.Endpoint) map[string]uint64 {
	t.Helper()
	d, err := e.Drops()
	check(t, err)
	return d
}

// TestReleaseOnce releases copies of a message, also when its buffer holds another message by then.
func TestReleaseOnce(t *testing.T) {
	a, b := pair(t, ud.Options{RecvDepth: 1})
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("first")))
	first := receive(t, b)
	again := first
	first.Release()
	first.Release()
	again.Release()
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("second")))
	second := receive(t, b)
	again.Release() // must not release the second message
	a.Release([]ud.Message{second})
	if s := b.Stats(); s.Lent != 1 || string(second.Data) != "second" {
		t.Errorf("got %d lent, data %q", s.Lent, second.Data)
	}
	if err := again.Reply(guard(t), []byte("too late")); err == nil {
		t.Error("Reply to a released message succeeded")
	}
	b.Release([]ud.Message{{}, second, {Data: []byte("the program's own")}})
	if s := b.Stats(); s.Lent != 0 {
		t.Errorf("got %d lent, want 0", s.Lent)
	}
}

// TestFewPosted lends most buffers, and returns the others, which are too few to be posted together: they are posted
// before a goroutine waits.
func TestFewPosted(t *testing.T) {
	const depth = 64 // returned buffers are posted eight at a time
	a, b := pair(t, ud.Options{RecvDepth: depth})
	var kept []ud.Message
	for i := range depth {
		check(t, a.Send(guard(t), b.LocalAddr(), []byte(text(i))))
		kept = append(kept, receive(t, b))
	}
	b.Release(kept[:1])
	check(t, a.Flush(guard(t)))
	heard := make(chan ud.Message)
	go func() {
		m, _ := b.Recv(guard(t))
		heard <- m
	}()
	eventually(t, "the message for the last buffer", func() bool {
		check(t, a.Send(guard(t), b.LocalAddr(), []byte("squeezed in")))
		select {
		case m := <-heard:
			return string(m.Data) == "squeezed in"
		default:
			return false
		}
	})
}

func TestBatches(t *testing.T) {
	a, b := pair(t, ud.Options{})
	const n = 300
	out := make([]ud.Message, n)
	for i := range out {
		out[i] = ud.Message{To: b.LocalAddr(), Data: []byte(text(i)), Imm: uint32(i), HasImm: i%2 == 1}
	}
	sent, err := a.SendBatch(guard(t), out)
	if check(t, err); sent != n {
		t.Fatalf("%d of %d sent", sent, n)
	}
	in := make([]ud.Message, 100)
	for got := 0; got < n; {
		k, err := b.RecvBatch(guard(t), in)
		check(t, err)
		for i, m := range in[:k] {
			if want := out[got+i]; string(m.Data) != text(got+i) || m.HasImm != want.HasImm || m.HasImm && m.Imm != want.Imm {
				t.Fatalf("message %d is %q, immediate %d %t", got+i, m.Data, m.Imm, m.HasImm)
			}
		}
		b.Release(in[:k])
		got += k
	}
	if n, err := b.RecvBatch(guard(t), nil); n != 0 || err != nil {
		t.Errorf("receive into an empty slice: got %d, %v", n, err)
	}
	if n, err := b.Poll(in); n != 0 || err != nil {
		t.Errorf("poll: got %d, %v", n, err)
	}
}

// TestEcho sends messages back as they came.
func TestEcho(t *testing.T) {
	a, b := pair(t, ud.Options{})
	flood(t, a, b.LocalAddr(), 20)
	messages := make([]ud.Message, 20)
	for got := 0; got < 20; {
		n, err := b.RecvBatch(guard(t), messages)
		check(t, err)
		for i := range messages[:n] {
			messages[i].To = messages[i].From
		}
		_, err = b.SendBatch(guard(t), messages[:n])
		check(t, err)
		b.Release(messages[:n])
		got += n
	}
	for i := range 20 {
		said(t, a, text(i))
	}
}

// TestNoAllocation measures the calls that move many messages, and those that move one. The cards have no workers,
// whose timers would allocate: polling runs them. The bound is the number of allocations per run that do not depend on
// the messages: with the race detector, Flush reallocates objects that the pools of commands have dropped.
func TestNoAllocation(t *testing.T) {
	left, right := wire(t, hca.WithoutWorker())
	a, b := listen(t, left, ud.Options{Spin: true}), listen(t, right, ud.Options{Spin: true})
	ctx, to, data := guard(t), b.LocalAddr(), make([]byte, 100)
	bound := 1.0
	if labtest.Race {
		bound = 4
	}
	out, in := make([]ud.Message, 32), make([]ud.Message, 32)
	move := func(from, to *ud.Endpoint, messages []ud.Message) {
		_, err := from.SendBatch(ctx, messages)
		check(t, err)
		from.Release(messages)
		runCard(t, from)
		for left := in; len(left) > 0; {
			n, err := to.RecvBatch(ctx, left)
			check(t, err)
			left = left[n:]
		}
		for i := range in {
			in[i].To = in[i].From
		}
	}
	if n := allocations(func() {
		for i := range out {
			out[i] = ud.Message{To: to, Data: data}
		}
		move(a, b, out)
		move(b, a, in)
		a.Release(in)
	}); n >= bound {
		t.Errorf("got %v allocations for %d round trips", n, len(out))
	}
	if n := allocations(func() {
		check(t, a.Send(ctx, to, data))
		runCard(t, a)
		m, err := b.Recv(ctx)
		check(t, err)
		check(t, m.Reply(ctx, data))
		m.Release()
		runCard(t, b)
		m, err = a.Recv(ctx)
		check(t, err)
		m.Release()
	}); n >= bound {
		t.Errorf("got %v allocations for a round trip", n)
	}
}

// allocations returns the number of allocations of a run after the wire has allocated all its buffers, which it does at
// their first use.
func allocations(run func()) float64 {
	for range 50 {
		run()
	}
	return testing.AllocsPerRun(200, run)
}

// runCard runs the card of an endpoint until its messages are sent, since no worker does so: one poll may find the card
// busy.
func runCard(t testing.TB, e *ud.Endpoint) {
	t.Helper()
	check(t, e.Flush(context.Background()))
	var none [1]ud.Message
	n, err := e.Poll(none[:])
	if check(t, err); n != 0 {
		t.Fatal("a message was not sent")
	}
}
