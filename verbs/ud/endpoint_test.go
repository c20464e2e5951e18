// SPDX-License-Identifier: Apache-2.0

package ud_test

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

func TestSendAndAnswer(t *testing.T) {
	for _, spin := range []bool{false, true} {
		a, b := pair(t, ud.Options{Spin: spin})
		ctx := guard(t)
		check(t, a.Send(ctx, b.LocalAddr(), []byte("hello")))
		m := receive(t, b)
		if string(m.Data) != "hello" || m.From != a.LocalAddr() || m.To != b.LocalAddr() || m.HasImm {
			t.Fatalf("%q from %v to %v, want it from %v to %v", m.Data, m.From, m.To, a.LocalAddr(), b.LocalAddr())
		}
		check(t, m.Reply(ctx, []byte("hello yourself")))
		m.Release()
		if m := said(t, a, "hello yourself"); m.From != b.LocalAddr() {
			t.Fatalf("got a response from %v, want %v", m.From, b.LocalAddr())
		}
		if err := m.Reply(ctx, nil); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("reply to a released message: %v", err)
		}
	}
}

// TestAttach checks Attach for a group that another program has joined.
func TestAttach(t *testing.T) {
	a, b := pair(t, ud.Options{})
	ctx := guard(t)
	check(t, b.JoinSendOnly(group))
	for range 2 { // no effect
		check(t, b.Attach(group))
	}
	check(t, a.Send(ctx, ud.Group(group), []byte("to all")))
	said(t, b, "to all")
	check(t, b.Leave(group))
	refused(t, b.Leave(group), verbs.ErrNoGID)
	check(t, a.Attach(group))
	check(t, b.Send(ctx, ud.Group(group), []byte("and back")))
	said(t, a, "and back")
	check(t, a.Leave(group))
	refused(t, a.Attach(b.LocalAddr().IP()), verbs.ErrInvalid)
}

func TestGroup(t *testing.T) {
	a, b := pair(t, ud.Options{})
	ctx := guard(t)
	check(t, b.Join(group))
	check(t, b.Join(group)) // no effect
	check(t, a.JoinSendOnly(group))
	check(t, a.Send(ctx, ud.Group(group), []byte("to all")))
	if m := said(t, b, "to all"); m.To != ud.Group(group) || m.From != a.LocalAddr() {
		t.Fatalf("from %v to %v", m.From, m.To)
	}
	check(t, a.Join(group)) // full member
	check(t, b.Send(ctx, ud.Group(group), []byte("and back")))
	said(t, a, "and back")
	said(t, b, "and back") // its own
	check(t, b.Leave(group))
	refused(t, b.Leave(group), verbs.ErrNoGID)
	check(t, a.Send(ctx, ud.Group(group), []byte("gone?")))
	said(t, a, "gone?")
	check(t, a.Send(ctx, b.LocalAddr(), []byte("alone")))
	said(t, b, "alone")
}
