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

// WaitTimeout bounds every wait, so that a hang fails the test. No test measures time.
var WaitTimeout = waittest.Limit

// What tests of all packages say about errors, and how they wait.
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

// Done is called by goroutines that are about to sleep.
func (w *watched) Done() <-chan struct{} {
	select {
	case w.Asked <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// Waiting starts n goroutines in a call that waits with a context, and returns when all of them do. What
// they gave comes through the channel.
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

// Outcome is the first part of a completion.
type Outcome struct {
	ID     uint64
	Status verbs.WCStatus
}

// Ended is a completion with a status; OK one with success; Flushed one that was flushed.
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

// Get takes the next value, which must come.
func Get[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-Guard(t).Done():
		t.Fatalf("no %T came", v)
	}
	return v
}
