package waittest

import (
	"context"
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

// Guard ends a wait that hangs.
func Guard(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	t.Cleanup(cancel)
	return ctx
}
