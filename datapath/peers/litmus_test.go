// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// TestLitmusInbox hands over a packet to an engine whose worker falls asleep. The model omits the inbox's lock, on
// which the wake-up does not depend.
func TestLitmusInbox(t *testing.T) {
	litmus.Check(t, nil, func(p *litmus.Program) {
		p.Thread("sender", func(t *litmus.Thread) {
			t.Store("put", "came", litmus.Plain, 1)
			t.Store("put, count", "count", litmus.Atomic, 1)
			asleep := t.Load("put, asleep", "asleep", litmus.Atomic)
			t.If(asleep.Is(1), func() { t.Store("notify", "told", litmus.Plain, 1) })
		})
		p.Thread("worker", func(t *litmus.Thread) {
			t.Store("setAsleep", "asleep", litmus.Atomic, 1)
			count := t.Load("peek", "count", litmus.Atomic)
			t.If(count.Is(0), func() {
				t.Await("sleep", "told", litmus.Plain, 1)
				t.Await("peek", "count", litmus.Atomic, 1)
			})
			p.Never("no packet", t.Load("peek, came", "came", litmus.Plain).Is(0))
		})
	})
}

// TestLitmusFull: an engine finds an inbox full while its owner empties it.
func TestLitmusFull(t *testing.T) {
	litmus.Check(t, map[string]string{
		"peek, count: store plain": "the swap fails if waited is stored meanwhile",
		"waited.Swap: load plain":  "likewise",
		"waited.Swap: store plain": "likewise",
	}, func(p *litmus.Program) {
		p.Set("count", 1)
		p.Thread("sender", func(t *litmus.Thread) {
			t.Store("full, waited", "waited", litmus.Atomic, 1)
			count := t.Load("full", "count", litmus.Atomic)
			t.If(count.Is(1), func() { t.Await("Blocked", "called", litmus.Plain, 1) })
		})
		p.Thread("owner", func(t *litmus.Thread) {
			t.Store("peek, count", "count", litmus.Atomic, 0)
			waited := t.Change("waited.Swap", "waited", litmus.Atomic, litmus.To(0))
			t.If(waited.Is(1), func() { t.Store("callOthers", "called", litmus.Plain, 1) })
		})
	})
}
