// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// TestLitmusStop has memory_stop keep a thread in a signal's handler (stop_here) while a page moves. The copy contains the
// thread's earlier writes, and the thread reads the copy afterwards.
func TestLitmusStop(t *testing.T) {
	litmus.Check(t, map[string]string{
		"stopped: load acquire":             "message passing",
		"stop_here, released: load acquire": "likewise",
	}, func(p *litmus.Program) {
		p.Thread("thread", func(t *litmus.Thread) {
			t.Store("program", "page", litmus.Plain, 1)
			t.Await("stop_here", "signal", litmus.Plain, 1)
			t.Store("stop_here, stopped", "stopped", litmus.Atomic, 1)
			t.Await("stop_here, released", "released", litmus.Atomic, 1)
			p.Never("the thread does not see the copy", t.Load("program", "moved", litmus.Plain).Is(0))
		})
		p.Thread("mover", func(t *litmus.Thread) {
			t.Store("call", "signal", litmus.Plain, 1)
			t.Await("stopped", "stopped", litmus.Atomic, 1)
			page := t.Load("memory_copy", "page", litmus.Plain)
			p.Never("a write is lost", page.Is(0))
			t.StoreValue("put", "moved", litmus.Plain, func(v litmus.Values) int { return v(page) })
			t.Store("memory_go", "released", litmus.Atomic, 1)
		})
	})
}

// TestLitmusToken looks a completion up by its token while another thread stores the token's owner.
func TestLitmusToken(t *testing.T) {
	litmus.Check(t, nil, func(p *litmus.Program) {
		p.Thread("token_own", func(t *litmus.Thread) {
			t.Store("token_set, owner", "owner", litmus.Plain, 1)
			t.Store("token_set, token", "token", litmus.Atomic, 1)
		})
		p.Thread("token_find", func(t *litmus.Thread) {
			token := t.Load("token_find", "token", litmus.Acquire)
			t.If(token.Is(1), func() { p.Never("no owner", t.Load("token_find, owner", "owner", litmus.Plain).Is(0)) })
		})
	})
}
