// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// TestLitmusRest: the worker parks while a program begins to wait, and a leader falls asleep while its completion
// arrives. Each side first stores its own word, and then loads the other's. The leader's events are a Go channel, which
// its sender changes under a lock.
func TestLitmusRest(t *testing.T) {
	litmus.Check(t, map[string]string{
		"BeginWait: load plain": "the store counts",
		"notify: load plain":    "likewise",
	}, announce("BeginWait", "Runner.State", "turnTo", "park"), announce("notify", "WakeLeader", "runAsLeader", "Waiter.over"))
}

// announce models a program that has work, and a worker or leader that falls asleep.
func announce(comes, wakes, rests, looks string) func(p *litmus.Program) {
	return func(p *litmus.Program) {
		p.Thread("program", func(t *litmus.Thread) {
			t.Change(comes, "work", litmus.Atomic, func(n int) int { return n + 1 })
			asleep := t.Load(wakes, "asleep", litmus.Atomic)
			t.If(asleep.Is(1), func() { t.Store("wake", "woken", litmus.Plain, 1) })
		})
		p.Thread("sleeper", func(t *litmus.Thread) {
			t.Store(rests, "asleep", litmus.Atomic, 1)
			work := t.Load(looks, "work", litmus.Atomic)
			t.If(work.Is(0), func() { t.Await("sleep", "woken", litmus.Plain, 1) })
		})
	}
}
