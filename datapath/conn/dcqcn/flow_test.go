// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)

const us = time.Microsecond

// The rate changes in the published steps: it is halved at first, and later multiplied by 1 - alpha/2. Each of five
// steps halves the distance to the rate before the reduction; then the target rises.
func TestSteps(t *testing.T) {
	p, now := Defaults(), start
	var f Flow
	if f.Slowed() || f.Holds(&p, now) || !math.IsInf(f.Rate(), 1) {
		t.Fatalf("the flow has no rate limit: %+v", f)
	}
	is := func(what string, want float64) {
		t.Helper()
		if got := f.Rate(); math.Abs(got-want) > 1 {
			t.Fatalf("%s: got %.0f, want %.0f", what, got, want)
		}
	}
	f.Notified(&p, now)
	is("the first", 20e9)
	f.Notified(&p, now.Add(49*us))
	is("a second too soon", 20e9)
	now = now.Add(50 * us)
	f.Notified(&p, now)
	is("a second", 10e9)
	rate, target := 10e9, 20e9
	for step := 1; step <= 7; step++ {
		now = now.Add(55 * us)
		if step > p.Stages {
			target += float64(p.AdditiveRise)
		}
		rate = (rate + target) / 2
		f.Holds(&p, now)
		is(fmt.Sprintf("step %d", step), rate)
	}
	want := math.Pow(1-p.Gain, 7)
	if math.Abs(f.alpha-want) > 1e-9 {
		t.Errorf("got alpha %f, want %f", f.alpha, want)
	}
	f.Notified(&p, now)
	is("a third", rate*(1-want/2))
}

// If both rises by bytes and rises by time occur, the increments of the target grow, and finally the flow has no limit.
func TestHyperRise(t *testing.T) {
	p, now := Defaults(), start
	p.LineRate, p.RiseBytes = 100e9, 1000
	var f Flow
	for range 10 {
		f.Notified(&p, now)
		now = now.Add(p.ReduceTime)
	}
	steps := 0
	for ; f.Slowed(); steps++ {
		now = now.Add(p.RiseTime)
		f.Holds(&p, now)
		f.Sent(&p, now, 1000)
	}
	if steps < 2*p.Stages || steps > 60 {
		t.Errorf("no limit after %d steps", steps)
	}
}

// Under continuous forged notifications the flow keeps the minimum rate and sends packets evenly. When they end, the
// flow recovers by time alone.
func TestFlood(t *testing.T) {
	p, now := Defaults(), start
	var f Flow
	sent, last := 0, start
	for end := start.Add(time.Second); now.Before(end); now = now.Add(us) {
		f.Notified(&p, now)
		if f.Rate() < float64(p.MinRate) {
			t.Fatalf("%f", f.Rate())
		}
		if !f.Holds(&p, now) {
			f.Sent(&p, now, 4096)
			sent, last = sent+1, now
		}
		if now.Sub(last) > 4*time.Millisecond {
			t.Fatal("no packet was sent for 4 ms")
		}
	}
	if bits := sent * 8 * 4096; bits < int(p.MinRate)*9/10 || bits > 2*int(p.MinRate) {
		t.Errorf("%d bits in a second", bits)
	}
	if f.Holds(&p, now.Add(time.Second)) || f.Slowed() {
		t.Errorf("still limited a second later: %+v", f)
	}
}

// After a jump of the clock, forward or backward, a flow waits only briefly and its rate stays in the valid range.
func TestClockJumps(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	p, now := Defaults(), start
	var f Flow
	var n Notifier
	for range 100_000 {
		switch r.IntN(4) {
		case 0:
			f.Notified(&p, now)
		case 1:
			if !f.Holds(&p, now) {
				f.Sent(&p, now, r.IntN(4300))
			}
		case 2:
			n.Marked(&p, now)
		case 3:
			now = now.Add(time.Duration(r.IntN(100)) * us)
		}
		if r.IntN(1000) == 0 {
			now = now.Add(time.Duration(r.IntN(48)-24) * time.Hour)
			f.Holds(&p, now)
			if f.Slowed() && f.Next().Sub(now) > 5*time.Millisecond {
				t.Fatalf("waits %v", f.Next().Sub(now))
			}
		}
		if f.Slowed() && !(f.rate >= float64(p.MinRate) && f.rate <= float64(p.LineRate) && f.alpha >= 0 && f.alpha <= 1) {
			t.Fatalf("%+v", f)
		}
	}
}

// Notifier permits one notification in 50 µs.
func TestNotifier(t *testing.T) {
	p := Defaults()
	var n Notifier
	count := 0
	for at := time.Duration(0); at < time.Millisecond; at += us {
		if n.Marked(&p, start.Add(at)) {
			count++
		}
	}
	if count != 20 {
		t.Errorf("%d in a millisecond", count)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	p, now := Defaults(), start
	var f Flow
	if n := testing.AllocsPerRun(1000, func() {
		now = now.Add(30 * us)
		f.Notified(&p, now)
		if !f.Holds(&p, now) {
			f.Sent(&p, now, 4096)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
