// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"testing"
	"time"
)

// served counts how many of so many connections at once are.
func (r *connectRate) served(user uint32, n int, now time.Time) (served int) {
	for range n {
		if r.allow(Holder{UID: user}, now) == nil {
			served++
		}
	}
	return served
}

// TestConnectRate: a user has a burst, then one connection every gap; others have their own.
func TestConnectRate(t *testing.T) {
	var r connectRate
	start := time.Now()
	for _, row := range []struct {
		name  string
		user  uint32
		after time.Duration
		want  int
	}{
		{"a burst", 1, 0, connectBurst},
		{"and no more", 1, 0, 0},
		{"a moment before the gap is over", 1, connectGap - 1, 0},
		{"when it is", 1, connectGap, 1},
		{"another user", 2, connectGap, connectBurst},
		{"ten gaps later", 1, 11 * connectGap, 10},
		{"long after", 1, time.Hour, connectBurst},
	} {
		if n := r.served(row.user, 2*connectBurst, start.Add(row.after)); n != row.want {
			t.Errorf("%s: %d are served, want %d", row.name, n, row.want)
		}
	}
	if r.refused != 7*2*connectBurst-3*connectBurst-11 {
		t.Errorf("%d were refused", r.refused)
	}
}

// TestConnectRateOfMany: users without an entry share a rate; those that are quiet are removed.
func TestConnectRateOfMany(t *testing.T) {
	var r connectRate
	start := time.Now()
	for user := range uint32(3 * mostRated) {
		_ = r.allow(Holder{UID: user}, start)
	}
	if len(r.due) != mostRated+1 {
		t.Errorf("%d users are told apart, and the rest", len(r.due)-1)
	}
	if n := r.served(9*mostRated, 1, start); n != 0 {
		t.Error("the rate that the rest share has no end")
	}
	if n := r.served(9*mostRated, 2*connectBurst, start.Add(connectBurst*connectGap)); n != connectBurst || len(r.due) != 1 {
		t.Errorf("later %d are served, and %d users told apart", n, len(r.due))
	}
}
