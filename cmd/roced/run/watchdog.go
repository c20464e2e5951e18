package run

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/roced/roced/cmd/roced/run/systemd"
)

// watchdog has the loop notify systemd's watchdog while everything responds. It notifies the watchdog itself while the
// kernel keeps a thread of the service waiting uninterruptibly: a program can cause that for as long as it takes pages
// out of memory that the card uses, and a process with such a thread cannot be killed and started again.
type watchdog struct {
	interval  time.Duration      // within which systemd expects a notification; 0: it has no watchdog
	questions chan chan struct{} // to the loop, which closes each one when everything has responded
	pending   chan struct{}      // the question that has no response yet, or nil
	notify    func()
	stuck     func() bool // reports whether a thread waits uninterruptibly
	log       *slog.Logger
}

func newWatchdog(notify func(), log *slog.Logger) (*watchdog, error) {
	interval, err := systemd.WatchdogInterval()
	return &watchdog{interval: interval, questions: make(chan chan struct{}), notify: notify, stuck: threadIsStuck, log: log}, err
}

// run asks four times in an interval, and waits as long for the response.
func (w *watchdog) run(ctx context.Context) {
	if w.interval == 0 {
		return
	}
	ticker := time.NewTicker(w.interval / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if responded := w.ask(ctx, ticker.C); !responded && w.stuck() {
			w.log.Warn("a thread of the service waits in the kernel, perhaps for a program that takes pages out of registered memory; the watchdog is notified all the same")
			w.notify()
		}
	}
}

// ask reports whether everything responds before the next tick.
func (w *watchdog) ask(ctx context.Context, tick <-chan time.Time) (responded bool) {
	if w.pending == nil {
		question := make(chan struct{})
		select {
		case w.questions <- question:
			w.pending = question
		case <-tick:
			return false
		case <-ctx.Done():
			return true
		}
	}
	select {
	case <-w.pending:
		w.pending = nil
		return true
	case <-tick:
		return false
	case <-ctx.Done():
		return true
	}
}

// threadIsStuck reports whether a thread of this process is in the state D of proc(5).
func threadIsStuck() bool {
	files, _ := filepath.Glob("/proc/self/task/*/stat") // the pattern is valid
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err == nil && isUninterruptible(stat) {
			return true
		}
	}
	return false
}

// isUninterruptible reports whether a line of /proc/PID/stat has the state D. The name before it can contain anything.
func isUninterruptible(stat []byte) bool {
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" D "))
}
