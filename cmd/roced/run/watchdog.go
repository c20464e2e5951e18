// SPDX-License-Identifier: Apache-2.0

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

// watchdog makes the loop reset systemd's watchdog while all components respond. It resets the watchdog
// itself while a thread of the service is blocked uninterruptibly in the kernel: a program can cause that by
// discarding pages of memory that the card uses, and a process with such a thread cannot be killed and
// restarted.
type watchdog struct {
	interval time.Duration      // time in which systemd expects a notification; 0 without a watchdog
	probes   chan chan struct{} // to the loop, which closes each when all components have responded
	pending  chan struct{}      // the probe without a response yet, or nil
	notify   func()
	stuck    func() bool // reports whether a thread is blocked uninterruptibly
	log      *slog.Logger
}

func newWatchdog(notify func(), log *slog.Logger) (*watchdog, error) {
	interval, err := systemd.WatchdogInterval()
	return &watchdog{interval: interval, probes: make(chan chan struct{}), notify: notify, stuck: threadIsStuck, log: log}, err
}

// run probes the loop at every quarter of the interval. A probe has failed if there is no response by the next quarter.
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
		if responded := w.probe(ctx, ticker.C); !responded && w.stuck() {
			w.log.Warn("a thread of the service is blocked in the kernel, possibly by a program that discards pages of registered memory; the watchdog is reset nevertheless")
			w.notify()
		}
	}
}

// probe reports whether all components respond before the next tick.
func (w *watchdog) probe(ctx context.Context, tick <-chan time.Time) (responded bool) {
	if w.pending == nil {
		probe := make(chan struct{})
		select {
		case w.probes <- probe:
			w.pending = probe
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

// threadIsStuck reports whether a thread of this process is in state D (proc(5)).
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

// isUninterruptible reports whether a line of /proc/PID/stat has state D. The name before it can contain any
// character.
func isUninterruptible(stat []byte) bool {
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" D "))
}
