// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"testing"

	"github.com/roced/roced/verbs"
)

// another opens a station in another session of a station's card.
func (s *station) another(config SessionConfig) *station {
	s.Helper()
	session, err := s.device.NewSession(config)
	check(s, err)
	return newStationIn(s, s.device, session)
}

// remains returns the state that a card keeps for all its sessions.
type remains struct{ sessions, queuePairs, groups, paths, domains, xrcSRQs int }

func (s *station) remains() remains {
	card := s.device
	used := 0
	for _, p := range card.paths.List() {
		used += p.Users
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	return remains{len(card.sessions), card.qps.Len(), len(card.groups.Groups()), used, len(card.domains.byKey), card.srqs.Len()}
}

// Two programs on one card are independent: they have the same handles, except for keys, for different objects, and
// reach each other by the card's address and the other card by the wire.
func TestSessionsAreApart(t *testing.T) {
	w := newWirePair(t)
	one, two := w.a, w.a.another(SessionConfig{})
	if one.qp.Number() == two.qp.Number() {
		t.Fatalf("two queue pairs have number %v", one.qp.Number())
	}
	for _, row := range []struct {
		from, to *station
		address  string
	}{{one, two, "10.0.0.1"}, {two, one, "10.0.0.1"}, {two, w.b, "10.0.0.2"}, {w.b, two, "10.0.0.1"}} {
		row.to.receive(1)
		copy(row.from.slot(0), "for the right owner")
		row.from.post(row.from.send(7, row.from.ah(row.address), row.to, row.from.piece(0, 19)))
		row.from.wait(1)
		wc := row.to.wait(1)[0]
		if _, payload := wc.Payload(row.to.slot(1)); string(payload) != "for the right owner" {
			t.Errorf("got %q", payload)
		}
		clear(row.from.slot(0))
		clear(row.to.slot(1))
	}
}

// Closing a session frees exactly its own resources, in any state: the other session continues, and the card's state is
// as before.
func TestCloseFreesItsOwn(t *testing.T) {
	w := newWirePair(t)
	before := w.a.remains()
	stays := w.a.another(SessionConfig{})
	check(t, stays.qp.AttachMcast(gid(groupV4), 0))
	stays.ah("10.0.0.2")
	with := w.a.remains()

	goes := w.a.another(SessionConfig{})
	check(t, goes.qp.AttachMcast(gid(groupV4), 0))
	check(t, goes.qp.AttachMcast(gid(groupV6), 0))
	goes.ah("10.0.0.2")
	goes.ah(groupV4)
	_, err := goes.ctx.JoinMulticast(address(groupV4), verbs.JoinFullMember)
	check(t, err)
	goes.receive(1, 2, 3)
	for range 5 {
		goes.newQP(defaultCap())
	}
	check(t, goes.ctx.Close())
	if got := w.a.remains(); got != with {
		t.Errorf("got %+v, want %+v", got, with)
	}
	_, err = goes.ctx.AllocPD()
	refused(t, err, verbs.ErrClosed)
	refused(t, goes.qp.PostSend([]verbs.SendWR{{}}), verbs.ErrClosed)
	check(t, goes.ctx.Close())

	stays.receive(1)
	w.b.post(w.b.toGroup(groupV4, 0, 5))
	w.b.wait(1)
	stays.wait(1)
	check(t, stays.ctx.Close())
	if got := w.a.remains(); got != before {
		t.Errorf("got %+v, want %+v", got, before)
	}
}

// Posted requests are sent before the session ends.
func TestSessionSendsBeforeItGoes(t *testing.T) {
	w := newWirePair(t)
	s := w.a.another(SessionConfig{})
	w.b.receive(0, 1, 2, 3)
	ah := s.ah("10.0.0.2")
	for i := range 4 {
		s.post(s.send(uint64(i), ah, w.b, s.piece(i, 10)))
	}
	check(t, s.ctx.Close())
	w.b.wait(4)
}

// TestUserOfACard: a card has a user while all sessions belong to that user.
func TestUserOfACard(t *testing.T) {
	card := newStillPair(t).a.device
	expect := func(want any) {
		t.Helper()
		if got := userOf(card.sessions); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	expect(nil) // the card's own session has no user
	open := func(of any) *Session {
		t.Helper()
		s, err := card.NewSession(SessionConfig{Sharer: of})
		check(t, err)
		return s
	}
	one := open("one")
	expect("one")
	same := open("one")
	expect("one")
	other := open("other")
	expect(nil)
	check(t, errors.Join(one.Close(), same.Close()))
	expect("other")
	check(t, other.Close())
	expect(nil)
}
