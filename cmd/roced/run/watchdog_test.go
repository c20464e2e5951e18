package run

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchdogOfAStuckThread: while the loop does not respond, systemd is notified if a thread is stuck in the kernel, and
// not if none is. It is again when the loop responds.
func TestWatchdogOfAStuckThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notified, stuck := 0, true
		w := &watchdog{interval: 4 * time.Second, questions: make(chan chan struct{}), notify: func() { notified++ }, stuck: func() bool { return stuck }, log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		go w.run(ctx)
		time.Sleep(9500 * time.Millisecond)
		synctest.Wait()
		if notified != 4 { // every second tick
			t.Errorf("a thread is stuck: notified %d times in 9.5 s, want 4", notified)
		}
		notified, stuck = 0, false
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if notified != 0 {
			t.Errorf("nothing responds: notified %d times", notified)
		}
		stuck = true
		for range 5 {
			close(<-w.questions)
		}
		synctest.Wait()
		if notified != 0 {
			t.Errorf("the loop responds: notified %d times besides", notified)
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
