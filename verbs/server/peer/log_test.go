// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"testing"
	"time"
)

// TestWarnings: a user has a line a minute, which counts those that were left out; others have their own.
func TestWarnings(t *testing.T) {
	var l Log
	start := time.Now()
	for _, row := range []struct {
		name  string
		uid   uint32
		after time.Duration
		more  int
		may   bool
	}{
		{"the first", 1, 0, 0, true},
		{"the second", 1, time.Second, 0, false},
		{"the third", 1, 59 * time.Second, 0, false},
		{"another user", 2, 59 * time.Second, 0, true},
		{"a minute later", 1, 60 * time.Second, 2, true},
		{"and two minutes after that", 1, 180 * time.Second, 0, true},
	} {
		if more, may := l.allow(Holder{UID: row.uid}, start.Add(row.after)); more != row.more || may != row.may {
			t.Errorf("%s: %d, %v; want %d, %v", row.name, more, may, row.more, row.may)
		}
	}
}

// TestWarningsOfMany: more users than have entries share a line; those of a minute ago are forgotten.
func TestWarningsOfMany(t *testing.T) {
	var l Log
	start, said := time.Now(), 0
	for uid := range uint32(3 * mostWarned) {
		if _, may := l.allow(Holder{UID: uid}, start); may {
			said++
		}
	}
	if said != mostWarned+1 || len(l.last) != mostWarned+1 {
		t.Errorf("%d lines, %d users", said, len(l.last))
	}
	if _, may := l.allow(Holder{UID: 5 * mostWarned}, start.Add(warningGap)); !may || len(l.last) != 1 {
		t.Errorf("after a minute: %v, %d users", may, len(l.last))
	}
}
