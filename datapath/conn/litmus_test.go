// SPDX-License-Identifier: Apache-2.0

package conn_test

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// write models a WRITE of two words to a program that polls the last one: the target of a stream (rs_can_send and
// take_room in verbs/c/cm).
func write(keepOrder func(t *litmus.Thread)) func(p *litmus.Program) {
	return func(p *litmus.Program) {
		p.Thread("engine", func(t *litmus.Thread) {
			t.Store("writeRemote", "addr", litmus.Plain, 1)
			keepOrder(t)
			t.Store("writeTail", "length", litmus.Plain, 1)
		})
		p.Thread("program", func(t *litmus.Thread) {
			length := t.Load("rs_can_send", "length", litmus.Acquire)
			t.If(length.Is(1), func() { p.Never("a length, and no address", t.Load("take_room", "addr", litmus.Plain).Is(0)) })
		})
	}
}

// TestLitmusWrite shows that a store and a load are sufficient for keepOrder, and an atomic addition is not.
func TestLitmusWrite(t *testing.T) {
	litmus.Check(t, nil, write(func(t *litmus.Thread) {
		t.Store("keepOrder", "order", litmus.Atomic, 0)
		t.Load("keepOrder", "order", litmus.Atomic)
	}))
	added := write(func(t *litmus.Thread) {
		t.Change("keepOrder", "order", litmus.Atomic, func(n int) int { return n + 1 })
	})
	if litmus.Fault(added) == nil {
		t.Error("an addition suffices")
	}
}

// TestLitmusCredit: a WRITE with immediate data returns credits for the buffer space of a stream (rs_give_credits). The
// peer reads its target after the completion, and then writes to that space.
func TestLitmusCredit(t *testing.T) {
	litmus.Check(t, map[string]string{
		"SendConsumer.Available: load acquire": "message passing",
		"SendConsumer.Available: load plain":   "a store does not pass the branch before it",
		"rs_can_send: load plain":              "the completion was polled before it",
	}, func(p *litmus.Program) {
		p.Thread("receiver", func(t *litmus.Thread) {
			p.Never("later bytes", t.Load("rrecv", "rbuf", litmus.Plain).IsNot(0))
			t.Store("roced_send_publish", "posted", litmus.Atomic, 1)
		})
		p.Thread("engine", func(t *litmus.Thread) {
			t.Await("SendConsumer.Available", "posted", litmus.Atomic, 1)
			t.Store("writeEnd", "target", litmus.Plain, 1)
			t.Store("CompletionProducer.Publish", "completed", litmus.Atomic, 1)
		})
		p.Thread("sender", func(t *litmus.Thread) {
			t.Await("roced_cq_ready", "completed", litmus.Acquire, 1)
			p.Never("a credit, and no target", t.Load("rs_can_send", "target", litmus.Acquire).Is(0))
			t.Store("writeRemote", "rbuf", litmus.Plain, 1) // by its engine
		})
	})
}
