// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// TestResolve checks that a destination is resolved once, and that an unresolvable one fails immediately.
func TestResolve(t *testing.T) {
	a, b := pair(t, ud.Options{})
	ctx := guard(t)
	for range 2 {
		check(t, a.Resolve(ctx, b.LocalAddr()))
		if n := a.Stats().Handles; n != 1 {
			t.Errorf("got %d destinations, want 1", n)
		}
	}
	check(t, a.Send(ctx, b.LocalAddr(), []byte("hello")))
	said(t, b, "hello")
	if n := a.Stats().Handles; n != 1 {
		t.Errorf("after a message: got %d destinations, want 1", n)
	}
	refused(t, a.Resolve(ctx, ud.Addr{}), verbs.ErrInvalid)
	check(t, a.Close())
	refused(t, a.Resolve(ctx, b.LocalAddr()), ud.ErrClosed)
}

// TestZeroQKey checks that Q_Key 0 works like any other if ZeroQKey is set.
func TestZeroQKey(t *testing.T) {
	a, b := pair(t, ud.Options{ZeroQKey: true})
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("hello")))
	if m := said(t, b, "hello"); m.From.QKey != 0 || b.LocalAddr().QKey != 0 {
		t.Errorf("got a message from %v to %v", m.From, b.LocalAddr())
	}
}
