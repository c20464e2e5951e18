package server

import (
	"testing"
	"time"
)

// A user has a line a minute, which counts those that were left out; others have their own.
func TestComplaints(t *testing.T) {
	var c complaints
	start := time.Now()
	for _, row := range []struct {
		name  string
		uid   int64
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
		if more, may := c.note(row.uid, start.Add(row.after)); more != row.more || may != row.may {
			t.Errorf("%s: %d, %v; want %d, %v", row.name, more, may, row.more, row.may)
		}
	}
}

// More users than can be told apart share a line; those of a minute ago are forgotten.
func TestComplaintsOfMany(t *testing.T) {
	var c complaints
	start, said := time.Now(), 0
	for uid := range int64(3 * mostComplaints) {
		if _, may := c.note(uid, start); may {
			said++
		}
	}
	if said != mostComplaints+1 || len(c.last) != mostComplaints+1 {
		t.Errorf("%d lines, %d users", said, len(c.last))
	}
	if _, may := c.note(5*mostComplaints, start.Add(complaintGap)); !may || len(c.last) != 1 {
		t.Errorf("after a minute: %v, %d users", may, len(c.last))
	}
}
