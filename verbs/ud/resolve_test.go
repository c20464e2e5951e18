package ud_test

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// TestResolve: what has been resolved is not again, and what cannot be is an error at once.
func TestResolve(t *testing.T) {
	a, b := pair(t, ud.Options{})
	ctx := guard(t)
	for range 2 {
		check(t, a.Resolve(ctx, b.LocalAddr()))
		if n := a.Stats().Handles; n != 1 {
			t.Errorf("%d destinations, want 1", n)
		}
	}
	check(t, a.Send(ctx, b.LocalAddr(), []byte("hello")))
	said(t, b, "hello")
	if n := a.Stats().Handles; n != 1 {
		t.Errorf("%d destinations after a message, want 1", n)
	}
	refused(t, a.Resolve(ctx, ud.Addr{}), verbs.ErrInvalid)
	check(t, a.Close())
	refused(t, a.Resolve(ctx, b.LocalAddr()), ud.ErrClosed)
}

// TestZeroQKey: 0 is a Q_Key as any other, where that is meant.
func TestZeroQKey(t *testing.T) {
	a, b := pair(t, ud.Options{ZeroQKey: true})
	check(t, a.Send(guard(t), b.LocalAddr(), []byte("hello")))
	if m := said(t, b, "hello"); m.From.QKey != 0 || b.LocalAddr().QKey != 0 {
		t.Errorf("from %v to %v", m.From, b.LocalAddr())
	}
}
