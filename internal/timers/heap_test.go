// SPDX-License-Identifier: Apache-2.0

package timers

import (
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Unix(1000, 0)

// TestOrder sets, resets and stops random timers, and compares the heap with a linear search.
func TestOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var heap Heap[int]
	all := make([]Timer[int], 50)
	for i := range all {
		all[i].Of = i
	}
	now := start
	for range 20_000 {
		one := &all[r.IntN(len(all))]
		switch r.IntN(5) {
		case 0, 1:
			at := now.Add(time.Duration(r.IntN(100)-10) * time.Second)
			if heap.Set(one, at); !one.Runs() || !one.At().Equal(at) {
				t.Fatalf("got %+v, want time %v", one, at)
			}
		case 2:
			if heap.Stop(one); one.Runs() {
				t.Fatalf("%+v runs", one)
			}
		case 3:
			now = now.Add(time.Duration(r.IntN(10)) * time.Second)
		default:
			first := firstOf(all)
			due := heap.Due(now)
			switch {
			case first == nil || first.at.After(now):
				if due != nil {
					t.Fatalf("%+v is due at %v", due, now)
				}
			case due == nil || due.Runs() || !due.At().Equal(first.at):
				t.Fatalf("%+v is due, want %+v", due, first)
			}
		}
		count := 0
		for i := range all {
			if all[i].Runs() {
				count++
			}
		}
		if first, want := heap.First(), firstOf(all); count != len(heap) || (first == nil) != (want == nil) || first != nil && !first.at.Equal(want.at) {
			t.Fatalf("%d timers run, the heap has %d; the first is %+v, want %+v", count, len(heap), first, want)
		}
	}
}

// firstOf returns the earliest running timer.
func firstOf(all []Timer[int]) (first *Timer[int]) {
	for i := range all {
		if one := &all[i]; one.Runs() && (first == nil || one.at.Before(first.at)) {
			first = one
		}
	}
	return first
}

// TestReset: timers that are reset to an earlier or later time are returned in order.
func TestReset(t *testing.T) {
	var all Heap[int]
	one, two := &Timer[int]{}, &Timer[int]{}
	all.Set(one, start.Add(2))
	all.Set(two, start.Add(3))
	all.Set(two, start.Add(1))
	if at := all.First().At(); !at.Equal(start.Add(1)) {
		t.Errorf("earlier: %v", at)
	}
	all.Set(two, start.Add(9))
	if all.Due(start.Add(5)) != one || all.Due(start.Add(5)) != nil || all.Due(start.Add(9)) != two {
		t.Error("timers are due in the wrong order")
	}
}
