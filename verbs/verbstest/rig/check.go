// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
)

// WaitTimeout limits every wait, so that a hang fails the test. No test measures time.
var WaitTimeout = waittest.Limit

// Helpers of internal test packages.
var (
	Check, Refused    = errtest.Check, errtest.Refused
	Eventually, Guard = waittest.Eventually, waittest.Guard
	Often             = waittest.Often
)

// watched is a context that reports when a goroutine waits on it.
type watched struct {
	context.Context
	Asked chan struct{} // of capacity 1
}

func Watch(ctx context.Context) *watched { return &watched{ctx, make(chan struct{}, 1)} }

// Done reports on Asked that a goroutine is about to sleep, and returns the context's channel.
func (w *watched) Done() <-chan struct{} {
	select {
	case w.Asked <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// Waiting calls wait in n goroutines, and returns when all of them are waiting. The channel receives their results.
func Waiting(ctx context.Context, t testing.TB, n int, wait func(ctx context.Context) error) <-chan error {
	t.Helper()
	done := make(chan error, n)
	for range n {
		own := Watch(ctx)
		go func() { done <- wait(own) }()
		select {
		case <-own.Asked:
		case <-ctx.Done():
			t.Fatal("no goroutine waits")
		}
	}
	return done
}

func GID(address netip.Addr) verbs.GID { return verbs.GIDFromAddr(address) }

// Outcome is the ID and the status of a completion.
type Outcome struct {
	ID     uint64
	Status verbs.WCStatus
}

// Ended returns the Outcome of a request with a status, OK that of a successful one, and Flushed that of a flushed one.
func Ended(id uint64, status verbs.WCStatus) Outcome { return Outcome{id, status} }

func OK(id uint64) Outcome { return Outcome{id, verbs.WCSuccess} }

func Flushed(id uint64) Outcome { return Outcome{id, verbs.WCWRFlushErr} }

// Same compares completions by id and status.
func Same(t testing.TB, got []verbs.WC, want ...Outcome) {
	t.Helper()
	bad := len(got) != len(want)
	for i := 0; !bad && i < len(got); i++ {
		bad = got[i].ID != want[i].ID || got[i].Status != want[i].Status
	}
	if bad {
		t.Errorf("completions %+v, want %+v", got, want)
	}
}

// Completions polls a queue until it is empty.
func Completions(t testing.TB, cq *verbs.CQ) (all []verbs.WC) {
	t.Helper()
	for {
		var wcs [16]verbs.WC
		n, err := cq.Poll(wcs[:])
		Check(t, err)
		if all = append(all, wcs[:n]...); n == 0 {
			return all
		}
	}
}

// Get receives the next value, and fails the test after a timeout.
func Get[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-Guard(t).Done():
		t.Fatalf("received no %T within the timeout", v)
	}
	return v
}
