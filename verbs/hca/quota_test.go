// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
)

// TestNobodyTakesTheLast: whatever users with many objects hold of a card, a user with none gets some.
func TestNobodyTakesTheLast(t *testing.T) {
	w := newWirePair(t)
	session := func(name string) *Session {
		s, err := w.a.device.NewSession(SessionConfig{Quota: quota.New(name, Limits{}, nil)})
		check(t, err)
		return s
	}
	greedy, late := session("greedy"), session("late")
	maker := func(s *Session) func() error {
		ctx, err := verbs.Open(s)
		check(t, err)
		pd, err := ctx.AllocPD()
		check(t, err)
		cq, err := ctx.CreateCQ(1)
		check(t, err)
		return func() error {
			_, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1}})
			return err
		}
	}
	more, one := maker(greedy), maker(late)
	count := 0
	var err error
	for ; err == nil && count <= maxQP; count++ {
		err = more()
	}
	refused(t, err, verbs.ErrLimit, "QPs of the card", "14336 of 16384", "greedy has")
	for range maxQP / 8 / 32 { // the reserve for users with few
		check(t, one())
	}
	refused(t, one(), verbs.ErrLimit, "late has 64")
}

// TestSessionsAreLeftForOthers: the same with sessions.
func TestSessionsAreLeftForOthers(t *testing.T) {
	w := newWirePair(t)
	greedy := SessionConfig{Quota: quota.New("greedy", Limits{}, nil)}
	var err error
	for n := 0; err == nil && n <= maxSessions; n++ {
		_, err = w.a.device.NewSession(greedy)
	}
	refused(t, err, verbs.ErrLimit, "sessions of the card")
	_, err = w.a.device.NewSession(SessionConfig{Quota: quota.New("late", Limits{}, nil)})
	check(t, err)
}

// TestGroupsAreLeftForOthers: the same with groups.
func TestGroupsAreLeftForOthers(t *testing.T) {
	w := newWirePair(t)
	station := func(name string) *verbs.QP {
		s, err := w.a.device.NewSession(SessionConfig{Quota: quota.New(name, Limits{}, nil)})
		check(t, err)
		ctx, err := verbs.Open(s)
		check(t, err)
		pd, err := ctx.AllocPD()
		check(t, err)
		cq, err := ctx.CreateCQ(1)
		check(t, err)
		qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: defaultCap()})
		check(t, err)
		check(t, qp.Activate(testQKey))
		return qp
	}
	group := func(i int) wire.GID {
		return wire.GIDFromAddr(netip.AddrFrom4([4]byte{239, 1, byte(i >> 8), byte(i)}))
	}
	greedy, late := station("greedy"), station("late")
	n := 0
	var err error
	for ; err == nil; n++ {
		err = greedy.AttachMcast(group(n), 0)
	}
	refused(t, err, verbs.ErrLimit, "groups of the card", "14336 of 16384")
	check(t, late.AttachMcast(group(n), 0))
	check(t, greedy.AttachMcast(group(n), 0)) // the group exists now
}
