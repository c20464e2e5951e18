// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"testing"
	"time"
)

// TestPollsThatMiss: a reader whose polls fail polls less and less; a successful poll compensates for it.
func TestPollsThatMiss(t *testing.T) {
	p := poll{}
	next := func(comes bool) (polled bool) {
		p.soon = true
		p.begin()
		polled = p.on
		if polled && !comes {
			p.start = p.start.Add(-2 * pollTime)
			if p.again() || p.on {
				t.Fatal("it polls for ever")
			}
		}
		p.end()
		return polled
	}
	if !next(true) {
		t.Fatal("it does not poll")
	}
	var missed int
	for range 1000 {
		if next(false) {
			missed++
		}
	}
	if missed > 7+1000/64 {
		t.Errorf("got %d unsuccessful polls for 1000 messages", missed)
	}
	for n := 0; !next(true); n++ {
		if n > 64 {
			t.Fatal("it polls never again")
		}
	}
	for range 2 {
		if !next(true) {
			t.Error("it does not poll, though messages come")
		}
	}
}

// TestOnePolls: one reader of a process polls at a time, and none if messages come seldom.
func TestOnePolls(t *testing.T) {
	a, b, seldom := poll{soon: true}, poll{soon: true}, poll{}
	a.begin()
	b.begin()
	seldom.begin()
	if !a.on || b.on || seldom.on || !a.again() || b.again() {
		t.Errorf("%+v, %+v, %+v", a, b, seldom)
	}
	a.end()
	b.begin()
	if !b.on {
		t.Error("the next does not poll after the first")
	}
	b.start = time.Now().Add(-time.Second)
	b.end()
	if b.soon {
		t.Error("a message that took a second came soon")
	}
}
