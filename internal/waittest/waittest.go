package waittest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Limit bounds every wait, so that a hang fails the test. It is far longer than anything takes that is waited for.
const Limit = time.Minute

// Eventually waits for something that the card, the kernel or another goroutine does.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Limit); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not come", what)
		}
	}
}

// Guard ends a wait that hangs, not before Limit. A test that waits a hundred thousand times has a few of them, not as
// many timers.
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

// guard is a context that waits may begin with until then: it lasts for Limit afterwards.
type guard struct {
	context.Context
	until time.Time
}

// guards are the last of each test.
var guards sync.Map
