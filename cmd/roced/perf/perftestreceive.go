package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// receiveAll is the server of ib_send_bw. If messages are lost, ib_send_bw's own server waits
// forever. This one lets the client end normally, and reports an error.
func (d *datagrams) receiveAll() error {
	a := arrivals{size: d.test.Size}
	if err := d.receiveUntilEnd(&a); err != nil {
		return err
	}
	count := uint64(d.options.trips)
	// the client has not said how many it sent
	if err := a.drainFor(d.Context(), d.endpoint, math.MaxUint64, d.Timeout); err != nil {
		return err
	}
	if err := d.addReceived(d.test.Size, outcome{Received: a.packets, Elapsed: a.elapsed()}); err != nil {
		return err
	}
	err := d.Handshake(func(io.ReadWriter) error { return d.exchange.End() })
	if a.packets != count {
		err = errors.Join(fmt.Errorf("%d messages came, not %d (%s); was %s given the same -n, and not -D?", a.packets, count, d.device.DropsSince(d.before), d.options.program()), err)
	}
	return err
}

// receiveUntilEnd counts until the client says that it has sent all.
func (d *datagrams) receiveUntilEnd(a *arrivals) error {
	return d.untilEnd(func(ctx context.Context) error {
		for ctx.Err() == nil {
			packets := a.packets
			if err := d.countFor(ctx, a, d.Timeout); err != nil {
				return err
			}
			if ctx.Err() == nil && a.packets == packets {
				return fmt.Errorf("%d messages came, and nothing more for %v (%s)%s: %w", a.packets, d.Timeout, d.device.DropsSince(d.before), d.suspicion(a.packets), unix.ETIMEDOUT)
			}
		}
		return nil
	})
}

// untilEnd has a server count messages, until the client's last words end the context.
func (r *perftestRun) untilEnd(count func(context.Context) error) error {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	word := make(chan error, 1)
	go func() {
		word <- r.exchange.AwaitEnd()
		stop()
	}()
	if err := count(ctx); err != nil {
		return err
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
func (d *datagrams) suspicion(packets uint64) string {
	option := ""
	switch packets {
	case 0:
		option = "--reversed"
	case uint64(d.options.trips):
		option = "-b"
	default:
		return ""
	}
	return fmt.Sprintf("; was %s started with %s? roced perf sends nothing as its server", d.options.program(), option)
}

func (d *datagrams) countFor(ctx context.Context, a *arrivals, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return a.countUntil(ctx, d.endpoint, d.test.Sleep)
}
