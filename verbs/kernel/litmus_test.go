// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// TestLitmusOrder has a program poll memory for a WRITE, and call DMASyncSingleForCPU. An atomic addition is too weak there.
func TestLitmusOrder(t *testing.T) {
	poll := func(order func(t *litmus.Thread)) func(p *litmus.Program) {
		return func(p *litmus.Program) {
			p.Thread("card", func(t *litmus.Thread) {
				t.Store("writeRemote", "data", litmus.Plain, 1)
				t.Store("keepOrder, writeTail", "last", litmus.Release, 1)
			})
			p.Thread("program", func(t *litmus.Thread) {
				last := t.Load("poll", "last", litmus.Plain)
				order(t)
				data := t.Load("read", "data", litmus.Plain)
				p.Never("the last byte without the others", func(v litmus.Values) bool { return v(last) == 1 && v(data) == 0 })
			})
		}
	}
	litmus.Check(t, nil, poll(func(t *litmus.Thread) {
		t.Store("order", "ordered", litmus.Atomic, 0)
		t.Load("order", "ordered", litmus.Atomic)
	}))
	added := poll(func(t *litmus.Thread) { t.Change("order", "ordered", litmus.Atomic, func(n int) int { return n + 1 }) })
	if litmus.Fault(added) == nil {
		t.Error("an addition is enough")
	}
}
