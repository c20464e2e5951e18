// SPDX-License-Identifier: Apache-2.0

package waittest

import (
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// slowVariable has the factor by which time limits are longer on a slow machine: hack/interop/suite sets it in virtual
// machines that are emulated.
const slowVariable = "ROCED_SLOW"

// Limit is the time limit of every wait, so that a hang fails the test. It is much longer than any expected
// wait.
var Limit = Long(time.Minute)

// Long returns the time limit d, or on a slow machine (ROCED_SLOW) a multiple of it.
func Long(d time.Duration) time.Duration {
	if factor, err := strconv.Atoi(os.Getenv(slowVariable)); err == nil && factor > 1 {
		return d * time.Duration(factor)
	}
	return d
}

// Eventually waits for an effect of the card, the kernel or another goroutine.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for: %s", what)
		}
	}
}

// Guard returns a context that ends a hanging wait after Limit at the earliest. Consecutive waits share a context, so
// that a test with many waits creates few timers.
func Guard(t testing.TB) context.Context {
	if last, has := guards.Load(t); has && time.Now().Before(last.(*guard).until) {
		return last.(*guard).Context
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*Limit)
	made := &guard{ctx, time.Now().Add(Limit)}
	guards.Store(t, made)
	t.Cleanup(func() {
		guards.CompareAndDelete(t, made)
		cancel()
	})
	return ctx
}

// guard is a context for waits that start before until: it lasts for Limit afterwards.
type guard struct {
	context.Context
	until time.Time
}

// guards holds the current guard of each test.
var guards sync.Map
