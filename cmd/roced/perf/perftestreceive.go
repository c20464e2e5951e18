package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"golang.org/x/sys/unix"
)

// receiveAll is the server of ib_send_bw. If messages are lost, ib_send_bw's own server waits
// forever. This one lets the client end normally, and reports an error.
func (r *perftestRun) receiveAll(*cli.Progress) error {
	a := arrivals{size: r.test.Size}
	if err := r.receiveUntilEnd(&a); err != nil {
		return err
	}
	count := uint64(r.options.trips)
	// the client has not said how many it sent
	if err := a.drainFor(r.Context(), r.endpoint, math.MaxUint64, r.Timeout); err != nil {
		return err
	}
	if err := r.addReceived(&a); err != nil {
		return err
	}
	err := r.Handshake(func(io.ReadWriter) error { return r.exchange.End() })
	if a.packets != count {
		err = errors.Join(fmt.Errorf("%d messages came, not %d (%s); was %s given the same -n, and not -D?", a.packets, count, r.device.DropsSince(r.before), r.binary()), err)
	}
	return err
}

// receiveUntilEnd counts until the client says that it has sent all.
func (r *perftestRun) receiveUntilEnd(a *arrivals) error {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	word := make(chan error, 1)
	go func() {
		word <- r.exchange.AwaitEnd()
		stop()
	}()
	for ctx.Err() == nil {
		packets := a.packets
		if err := r.countFor(ctx, a, r.Timeout); err != nil {
			return err
		}
		if ctx.Err() == nil && a.packets == packets {
			return fmt.Errorf("%d messages came, and nothing more for %v (%s)%s: %w", a.packets, r.Timeout, r.device.DropsSince(r.before), r.suspicion(a.packets), unix.ETIMEDOUT)
		}
	}
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	if err := <-word; err != nil {
		return r.Explain(err)
	}
	return nil
}

// suspicion is a possible reason for a client's silence: that it waits for messages itself.
func (r *perftestRun) suspicion(packets uint64) string {
	option := ""
	switch packets {
	case 0:
		option = "--reversed"
	case uint64(r.options.trips):
		option = "-b"
	default:
		return ""
	}
	return fmt.Sprintf("; was %s started with %s? roced perf sends nothing as its server", r.binary(), option)
}

func (r *perftestRun) countFor(ctx context.Context, a *arrivals, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return a.countUntil(ctx, r.endpoint, r.test.Sleep)
}
