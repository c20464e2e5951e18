// SPDX-License-Identifier: Apache-2.0

package peer

import "testing"

// TestBlockingCallsAreFair: users beyond the last eighth of all threads get one each, and calls that wait run when a thread
// is free.
func TestBlockingCallsAreFair(t *testing.T) {
	var b blocking
	release, done := make(chan struct{}), make(chan struct{}, 300*2*MaxUserThreads)
	all := 0
	for user := range uint32(300) {
		for range 2 * MaxUserThreads {
			all++
			b.run(Holder{UID: user}, func() { <-release; done <- struct{}{} })
		}
	}
	b.mu.Lock()
	if b.threads != maxThreads || b.users[Holder{}].running != MaxUserThreads {
		t.Errorf("%d threads, the first user has %d", b.threads, b.users[Holder{}].running)
	}
	for user, calls := range b.users {
		if most := uint32((maxThreads - keptThreads) / MaxUserThreads); user.UID >= most && calls.running > 1 {
			t.Errorf("%v has %d threads of the last eighth", user, calls.running)
		}
	}
	b.mu.Unlock()
	close(release)
	for range all {
		<-done
	}
	eventually(t, "all have returned", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.threads == 0 && len(b.users) == 0
	})
}
