// SPDX-License-Identifier: Apache-2.0

package datapath_test

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// TestLitmusDeregister removes a region from the tables while a round writes to it. The program then copies the page
// (memory_move_apart in verbs/c) and uses it for other data.
func TestLitmusDeregister(t *testing.T) {
	litmus.Check(t, map[string]string{
		"lease: store plain":  "later accesses wait for the load of the lock",
		"answer: store plain": "no round runs before the key is cleared: the lease is held until then",
	}, func(p *litmus.Program) {
		p.Set("key", 1)
		var key, copied, reused litmus.Reg
		p.Thread("round", func(t *litmus.Thread) {
			t.Lock("lease", "lease")
			key = t.Load("Table.Remote", "key", litmus.Plain)
			t.If(key.Is(1), func() { t.Store("writeRemote", "page", litmus.Plain, 1) })
			t.Unlock("lease.Unlock", "lease")
		})
		p.Thread("control", func(t *litmus.Thread) {
			t.Lock("lease", "lease")
			t.Store("Do, ClearKey", "key", litmus.Plain, 0)
			t.Unlock("lease.Unlock", "lease")
			t.Store("answer", "answer", litmus.Release, 1)
		})
		p.Thread("program", func(t *litmus.Thread) {
			t.Await("link_ask", "answer", litmus.Acquire, 1)
			copied = t.Load("memory_move_apart", "page", litmus.Plain)
			t.Store("reuse", "page", litmus.Plain, 2)
			reused = p.Memory("page")
		})
		p.Never("a WRITE is lost", key.Is(1).And(copied.Is(0)))
		p.Never("a WRITE after the answer", reused.Is(1))
	})
}

// TestLitmusKick: a program posts and finds its doorbell marked asleep. It runs a round, or wakes the worker if another
// round holds the lease. The engine's fields are not atomic: the lease synchronises the accesses of all rounds.
func TestLitmusKick(t *testing.T) {
	litmus.Check(t, map[string]string{
		"lease: store plain":   "later accesses wait for the load of the lock",
		"set: load plain":      "the store counts",
		"Collect: store plain": "the unlocking releases",
	}, kick, call)
}

// kick models a post while the worker runs its last round.
func kick(p *litmus.Program) {
	p.Thread("program", func(t *litmus.Thread) {
		t.Change("set", "bits", litmus.Atomic, litmus.To(1))
		t.TryLock("lease", "lease", func() { round(t) }, func() { wake(t) })
	})
	p.Thread("worker", func(t *litmus.Thread) {
		t.Store("turnTo", "doing", litmus.Atomic, 1)
		t.Lock("lease", "lease")
		round(t)
	})
	kicks := p.Memory("kicks")
	p.Never("a post that no round finds", p.Memory("bits").Is(1).And(p.Memory("woken").Is(0)))
	p.Never("a round that is not counted", kicks.Is(1).And(p.Memory("woken").Is(0)))
}

// call models a post while another program's round holds the lease, which the worker acquires afterwards.
func call(p *litmus.Program) {
	var rung litmus.Reg
	p.Thread("program", func(t *litmus.Thread) {
		t.Change("set", "bits", litmus.Atomic, litmus.To(1))
		wake(t)
	})
	p.Thread("worker", func(t *litmus.Thread) {
		t.Store("turnTo", "doing", litmus.Atomic, 1)
		rung = t.Load("Collect", "bits", litmus.Atomic)
	})
	p.Never("a post that no round finds", rung.Is(0).And(p.Memory("woken").Is(0)))
}

// round models a round. The field kicks represents all fields of the engine.
func round(t *litmus.Thread) {
	kicks := t.Load("kicks", "kicks", litmus.Plain)
	t.StoreValue("kicks", "kicks", litmus.Plain, func(v litmus.Values) int { return v(kicks) + 1 })
	rung := t.Load("Collect", "bits", litmus.Atomic)
	t.If(rung.Is(1), func() { t.Change("Collect", "bits", litmus.Atomic, litmus.To(0)) })
	t.Unlock("lease.Unlock", "lease")
}

// wake models Runner.Call.
func wake(t *litmus.Thread) {
	doing := t.Load("Runner.State", "doing", litmus.Atomic)
	t.If(doing.Is(1), func() { t.Store("sleeper.wake", "woken", litmus.Plain, 1) })
}

// TestLitmusSuspend suspends a session whose doorbell has not been rung, while its program posts.
func TestLitmusSuspend(t *testing.T) {
	litmus.Check(t, map[string]string{
		"suspendQuiet: store plain": "SetAsleep releases",
		"Ring: load plain":          "the store counts",
		"call: load acquire":        "the load of asleep acquires",
		"call: load plain":          "likewise",
	}, func(p *litmus.Program) {
		var seen litmus.Reg
		p.Thread("card", func(t *litmus.Thread) {
			t.Store("suspendQuiet", "suspended", litmus.Atomic, 1)
			t.Store("SetAsleep", "asleep", litmus.Atomic, 1)
			seen = t.Load("Pending", "summary", litmus.Atomic)
		})
		p.Thread("program", func(t *litmus.Thread) {
			t.Change("Ring", "summary", litmus.Atomic, litmus.To(1))
			asleep := t.Load("Ring, asleep", "asleep", litmus.Atomic)
			t.If(asleep.Is(1), func() {
				suspended := t.Load("call", "suspended", litmus.Atomic)
				t.If(suspended.Is(1), func() { t.Store("call, called", "called", litmus.Plain, 1) })
			})
		})
		p.Never("a post that the card does not find", seen.Is(0).And(p.Memory("called").Is(0)))
	})
}
