package waittest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Limit is the time limit of every wait, so that a hang fails the test. It is much longer than any expected
// wait.
const Limit = time.Minute

// Eventually waits for an effect of the card, the kernel or another goroutine.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for: %s", what)
		}
	}
}

// Guard returns a context that ends a hanging wait, not before Limit. Consecutive waits share a context, so a
// test with many waits does not create as many timers.
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
