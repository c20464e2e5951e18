// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalError is the cause of a context cancelled by a signal.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "stopped by " + unix.SignalName(e.signal) }

// signalContext returns a context that SIGINT and SIGTERM cancel, with a signalError as cause. Further
// signals have no effect, because timeout(1) sends each twice and cleaning up must not be interrupted.
//
// SIGPIPE is ignored, so that "roced demo | head" ends with an error and cleans up, instead of being killed.
func signalContext(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	signal.Ignore(unix.SIGPIPE)
	go func() {
		select {
		case s := <-signals:
			cancel(&signalError{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}
