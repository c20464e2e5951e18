package server

import (
	"testing"
	"time"
)

// served counts how many of so many connections at once are.
func (p *pace) served(user int64, n int, now time.Time) (served int) {
	for range n {
		if p.may(user, now) {
			served++
		}
	}
	return served
}

// TestPace: a user has a burst, then one connection every gap; others have their own.
func TestPace(t *testing.T) {
	var p pace
	start := time.Now()
	for _, row := range []struct {
		name  string
		user  int64
		after time.Duration
		want  int
	}{
		{"a burst", 1, 0, paceBurst},
		{"and no more", 1, 0, 0},
		{"a moment before the gap is over", 1, paceGap - 1, 0},
		{"when it is", 1, paceGap, 1},
		{"another user", 2, paceGap, paceBurst},
		{"ten gaps later", 1, 11 * paceGap, 10},
		{"long after", 1, time.Hour, paceBurst},
	} {
		if n := p.served(row.user, 2*paceBurst, start.Add(row.after)); n != row.want {
			t.Errorf("%s: %d are served, want %d", row.name, n, row.want)
		}
	}
	if p.refused != 7*2*paceBurst-3*paceBurst-11 {
		t.Errorf("%d were refused", p.refused)
	}
}

// TestPaceOfMany: users that cannot be told apart share a pace; those that are quiet are forgotten.
func TestPaceOfMany(t *testing.T) {
	var p pace
	start := time.Now()
	for user := range int64(3 * mostPaced) {
		p.may(user, start)
	}
	if len(p.due) != mostPaced+1 {
		t.Errorf("%d users are told apart, and the rest", len(p.due)-1)
	}
	if n := p.served(9*mostPaced, 1, start); n != 0 {
		t.Error("the pace that the rest share has no end")
	}
	if n := p.served(9*mostPaced, 2*paceBurst, start.Add(paceBurst*paceGap)); n != paceBurst || len(p.due) != 1 {
		t.Errorf("later %d are served, and %d users told apart", n, len(p.due))
	}
}

// TestUserPaysUntilNeighboursAnswer: a user that leaves while packets wait for neighbours pays for them when it connects
// again. It is forgotten when they have answered or failed.
func TestUserPaysUntilNeighboursAnswer(t *testing.T) {
	s := startDaemon(t, Config{PrivilegedGroup: -1}).Server
	eve := holder{owner: 1000}
	accounts := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.accounts)
	}
	first, err := s.enter(eve)
	check(t, err)
	first.quota.CountNeighbours(2, 2)
	s.leave(eve)
	if len(s.Users()) != 0 {
		t.Errorf("connected: %v", s.Users())
	}
	second, err := s.enter(eve)
	check(t, err)
	if second != first {
		t.Error("a user that connects again pays for nothing")
	}
	s.leave(eve)
	first.quota.CountNeighbours(-1, -1)
	if n := accounts(); n != 1 {
		t.Errorf("%d accounts", n)
	}
	first.quota.CountNeighbours(-1, -1)
	eventually(t, "the account is forgotten", func() bool { return accounts() == 0 })
}
