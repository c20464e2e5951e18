package hca

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// TestAdmit: the last eighth of what all have is for those that have little.
func TestAdmit(t *testing.T) {
	for _, row := range []struct {
		name             string
		used, own, asked uint64
		why              string // empty: admitted
	}{
		{"the first", 0, 0, 1, ""},
		{"all that is not kept", 0, 0, 896, ""},
		{"one more than that", 0, 0, 897, "1024, the last eighth is for those with at most 4, and eve has 0"},
		{"the last before those that are kept", 895, 895, 1, ""},
		{"the first of those", 896, 896, 1, "all users together have 896 of 1024"},
		{"the first of those, for who has little", 896, 3, 1, ""},
		{"not little any more", 897, 4, 1, "eve has 4"},
		{"too much at once", 897, 0, 5, "eve has 0"},
		{"the very last", 1023, 0, 1, ""},
		{"none is left", 1024, 0, 1, "1024 of 1024; close some"},
		{"more than is left", 1022, 0, 3, "1022 of 1024; close some"},
		{"beyond a limit that was lowered", 2000, 0, 1, "2000 of 1024"},
	} {
		err := shared{"things", row.used, 1024}.admit("eve", row.own, row.asked)
		if (err == nil) != (row.why == "") || err != nil && (!errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), row.why)) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestPoolOfAll: memory and descriptors are counted for all users together, and nothing is taken in vain.
func TestPoolOfAll(t *testing.T) {
	pool := NewPool(PoolLimits{Memory: 1 << 20, Descriptors: 1024})
	eve, mia := NewQuota("eve", Limits{Memory: 1 << 20, CompChannels: 890}, pool), NewQuota("mia", Limits{}, pool)
	check(t, eve.TakeMemory(7<<17))
	refused(t, eve.TakeMemory(1), verbs.ErrLimit, "last eighth", "eve has 917504")
	check(t, mia.TakeMemory(4096))
	refused(t, mia.TakeMemory(1), verbs.ErrLimit, "mia has 4096")
	eve.GiveMemory(7 << 17)
	check(t, mia.TakeMemory(7<<16))
	for range 890 {
		check(t, eve.take(limitCompChannels, "completion channel"))
	}
	refused(t, eve.take(limitCompChannels, "completion channel"), verbs.ErrLimit, "890 completion channels, in all its programs, and may have 890")
	check(t, eve.TakeDescriptors(4))
	check(t, eve.take(limitEventChannels, "event channel"))
	check(t, eve.take(limitMemberships, "membership"))
	check(t, eve.take(limitPDs, "PD")) // has none
	refused(t, eve.take(limitEventChannels, "event channel"), verbs.ErrLimit, "1 descriptors of the service", "eve has 896")
	check(t, mia.TakeDescriptors(2))
	eve.give(limitCompChannels, 890)
	check(t, mia.TakeDescriptors(880))
	if used := eve.Used(); used.CompChannels != 0 || used.EventChannels != 1 || used.PDs != 1 {
		t.Errorf("used %+v", used)
	}
	pool.SetLimits(PoolLimits{})
	check(t, mia.TakeMemory(1<<40))
}

// TestNobodyTakesTheLast: whatever users with much take of a card, a user who has none gets some.
func TestNobodyTakesTheLast(t *testing.T) {
	w := newWirePair(t)
	session := func(name string) *Session {
		s, err := w.a.device.NewSession(SessionConfig{Quota: NewQuota(name, Limits{}, nil)})
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
	for range maxQP / reserveParts / littleParts {
		check(t, one())
	}
	refused(t, one(), verbs.ErrLimit, "late has 64")
}

// TestSessionsAreLeftForOthers: likewise with sessions.
func TestSessionsAreLeftForOthers(t *testing.T) {
	w := newWirePair(t)
	quota := NewQuota("greedy", Limits{}, nil)
	var err error
	for n := 0; err == nil && n <= maxSessions; n++ {
		_, err = w.a.device.NewSession(SessionConfig{Quota: quota})
	}
	refused(t, err, verbs.ErrLimit, "sessions of the card")
	_, err = w.a.device.NewSession(SessionConfig{Quota: NewQuota("late", Limits{}, nil)})
	check(t, err)
}

// TestPortsAreLeftForOthers: and with the ports that are given out.
func TestPortsAreLeftForOthers(t *testing.T) {
	greedy, late := cmUser{NewQuota("greedy", Limits{}, nil)}, cmUser{NewQuota("late", Limits{}, nil)}
	refusedAt := uint64(0)
	for used := uint64(0); refusedAt == 0; used++ {
		check(t, greedy.quota.take(limitIDs, "id"))
		if err := greedy.AdmitPort(used, 28232); err != nil {
			refused(t, err, verbs.ErrLimit, "ports that are given out", "24703 of 28232")
			refusedAt = used
		}
	}
	check(t, late.AdmitPort(refusedAt, 28232))
}

// TestGroupsAreLeftForOthers: and with groups.
func TestGroupsAreLeftForOthers(t *testing.T) {
	w := newWirePair(t)
	station := func(name string) *verbs.QP {
		s, err := w.a.device.NewSession(SessionConfig{Quota: NewQuota(name, Limits{}, nil)})
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
	check(t, greedy.AttachMcast(group(n), 0)) // it is there now
}
