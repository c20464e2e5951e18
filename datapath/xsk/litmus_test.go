// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// TestLitmusSend sends a frame through the TX ring and reclaims it through the completion ring, while the kernel falls
// asleep. The kernel's part models net/xdp/xsk_queue.h, and a driver that sets need_wakeup before its last poll of the
// ring.
func TestLitmusSend(t *testing.T) {
	litmus.Check(t, map[string]string{
		"consumer.available: load acquire": "message passing",
		"consumer.available: load plain":   "a store does not pass the branch before it; a compiler may move it",
	}, func(p *litmus.Program) {
		p.Thread("socket", func(t *litmus.Thread) {
			t.Store("Reserve", "frame", litmus.Plain, 1)
			t.Store("put", "descriptor", litmus.Plain, 1)
			t.Store("producer.publish", "producer", litmus.Atomic, 1)
			asleep := t.Load("needWakeup", "flags", litmus.Atomic)
			t.If(asleep.Is(1), func() { t.Store("kick", "kick", litmus.Plain, 1) })
			t.Await("consumer.available", "completed", litmus.Atomic, 1)
			t.Store("Reserve", "frame", litmus.Plain, 2)
		})
		p.Thread("kernel", func(t *litmus.Thread) {
			t.Store("xsk_set_tx_need_wakeup", "flags", litmus.Plain, 1)
			t.Fence("smp_mb")
			ready := t.Load("xskq_cons_peek_desc", "producer", litmus.Acquire)
			t.If(ready.Is(0), func() {
				t.Await("sendto", "kick", litmus.Plain, 1)
				t.Await("xskq_cons_peek_desc", "producer", litmus.Acquire, 1)
			})
			p.Never("no descriptor", t.Load("xskq_cons_read_desc", "descriptor", litmus.Plain).Is(0))
			p.Never("another frame", t.Load("xmit", "frame", litmus.Plain).IsNot(1))
			t.Store("xskq_prod_submit_addr", "completed", litmus.Release, 1)
		})
	})
}

// TestLitmusReceive receives a chunk through the RX ring and returns it through the fill ring.
func TestLitmusReceive(t *testing.T) {
	litmus.Check(t, map[string]string{
		"consumer.available: load acquire": "message passing",
	}, func(p *litmus.Program) {
		p.Thread("kernel", func(t *litmus.Thread) {
			t.Store("xsk_copy_xdp", "chunk", litmus.Plain, 1)
			t.Store("xskq_prod_reserve_desc", "descriptor", litmus.Plain, 1)
			t.Store("xskq_prod_submit", "received", litmus.Release, 1)
			t.Await("xskq_cons_peek_addr_unchecked", "filled", litmus.Acquire, 1)
			p.Never("no address", t.Load("xskq_cons_read_addr", "address", litmus.Plain).Is(0))
			t.Store("xsk_copy_xdp", "chunk", litmus.Plain, 2)
		})
		p.Thread("socket", func(t *litmus.Thread) {
			t.Await("consumer.available", "received", litmus.Atomic, 1)
			p.Never("no descriptor", t.Load("consumer.at", "descriptor", litmus.Plain).Is(0))
			p.Never("another packet", t.Load("Receive", "chunk", litmus.Plain).IsNot(1))
			t.Store("put", "address", litmus.Plain, 1)
			t.Store("producer.publish", "filled", litmus.Atomic, 1)
		})
	})
}
