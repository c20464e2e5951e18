// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"golang.org/x/sys/unix"
)

// receiveAll implements the server of ib_send_bw. If messages are lost, ib_send_bw's own server
// waits forever. This one lets the client end normally and returns an error.
func (d *datagrams) receiveAll(line *cli.Progress) error {
	a := traffic.Arrivals{Size: d.test.Size, Line: line}
	if err := d.receiveUntilEnd(&a); err != nil {
		return err
	}
	count := uint64(d.options.Trips)
	// the client does not report the number of messages
	if err := a.DrainFor(d.Context(), d.endpoint, math.MaxUint64, d.Timeout); err != nil {
		return err
	}
	if err := d.addReceived(d.test.Size, protocol.Outcome{Received: a.Packets, Elapsed: a.Elapsed()}); err != nil {
		return err
	}
	err := d.Handshake(func(io.ReadWriter) error { return d.exchange.End() })
	if a.Packets != count {
		err = errors.Join(fmt.Errorf("received %d messages, want %d (%s); check that %s uses the same -n, and not -D", a.Packets, count, d.device.DropsSince(d.before), d.options.Program()), err)
	}
	return err
}

// receiveUntilEnd counts until the client reports that it has sent all messages.
func (d *datagrams) receiveUntilEnd(a *traffic.Arrivals) error {
	return d.untilEnd(func(ctx context.Context) error {
		for ctx.Err() == nil {
			packets := a.Packets
			if err := d.countFor(ctx, a, d.Timeout); err != nil {
				return err
			}
			if ctx.Err() == nil && a.Packets == packets {
				return fmt.Errorf("received %d messages, and no further message for %v (%s)%s: %w", a.Packets, d.Timeout, d.device.DropsSince(d.before), d.suspicion(a.Packets), unix.ETIMEDOUT)
			}
		}
		return nil
	})
}

// untilEnd runs count until the client's last keys arrive; then it cancels the context of count.
func (r *perftestRun) untilEnd(count func(context.Context) error) error {
	return r.until(r.exchange.AwaitEnd, count)
}

// until runs count until a step of the exchange is complete; then it cancels the context of count.
func (r *perftestRun) until(step func() error, count func(context.Context) error) error {
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	word := make(chan error, 1)
	go func() {
		word <- step()
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

// suspicion returns a possible reason for a client's silence: that the client itself waits for
// messages.
func (d *datagrams) suspicion(packets uint64) string {
	option := ""
	switch packets {
	case 0:
		option = "--reversed"
	case uint64(d.options.Trips):
		option = "-b"
	default:
		return ""
	}
	return fmt.Sprintf("; check that %s was not started with %s: as a server roced perf does not send", d.options.Program(), option)
}

func (d *datagrams) countFor(ctx context.Context, a *traffic.Arrivals, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return a.CountUntil(ctx, d.endpoint, d.test.Sleep)
}
