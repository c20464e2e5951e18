// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchdogOfAStuckThread: while the loop does not respond, systemd is notified only if a thread is stuck in the
// kernel. A loop that responds notifies systemd itself.
func TestWatchdogOfAStuckThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notified atomic.Int32
		var stuck atomic.Bool
		stuck.Store(true)
		w := &watchdog{
			interval: 4 * time.Second, probes: make(chan chan struct{}), notify: func() { notified.Add(1) }, stuck: stuck.Load,
			log: slog.New(slog.DiscardHandler),
		}
		ctx, stop := context.WithCancel(t.Context())
		go w.run(ctx)
		time.Sleep(9500 * time.Millisecond)
		if n := notified.Swap(0); n != 4 { // every second tick
			t.Errorf("a thread is stuck: notified %d times in 9.5 s, want 4", n)
		}
		stuck.Store(false)
		time.Sleep(10 * time.Second)
		if n := notified.Swap(0); n != 0 {
			t.Errorf("no response: notified %d times", n)
		}
		stuck.Store(true)
		for range 5 {
			close(<-w.probes)
		}
		if n := notified.Swap(0); n != 0 {
			t.Errorf("the loop responds: notified %d more times", n)
		}
		stop()
		synctest.Wait()
	})
}

func TestIsUninterruptible(t *testing.T) {
	for stat, want := range map[string]bool{
		"17 (roced) D 1 17": true, "17 (a) D (b) S 1": false, "17 (x) R 1": false, "17 (D ) D 1": true, "": false, ")": false,
	} {
		if got := isUninterruptible([]byte(stat)); got != want {
			t.Errorf("%q: %t", stat, got)
		}
	}
}
