// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// exchangeMessages implements either side of ib_send_lat.
func (d *datagrams) exchangeMessages(line *cli.Progress) error {
	p := &pingpong.Exchange{
		Endpoint: d.endpoint, To: d.exchange.Peer[0].Addr(), Data: make([]byte, d.test.Size), Begins: d.exchange.Client, Size: d.test.Size, Count: d.options.Trips, Timeout: d.Timeout, Sleep: d.test.Sleep,
	}
	if !d.exchange.Peer[0].IsGroup() {
		p.Peer = d.exchange.Peer[0].QPN // the queue pair of a group's sender is not exchanged
	}
	err := p.Run(d.Context(), line)
	if errors.Is(err, pingpong.ErrNothingCame) {
		err = fmt.Errorf("%w; check that %s uses the same -n and -s, and not -D; it waits forever and must be stopped", p.Explain(d.device, d.before), d.options.Program())
	}
	if err != nil {
		return err
	}
	trips := p.Trips
	if d.exchange.Client {
		trips = trips[1:] // before the first reply perftest measures the clock of its processor
	}
	d.report.Latency = append(d.report.Latency, report.NewLatencyResult(d.test.Size, 0, trips))
	return d.finish()
}

// sendAll implements the client of ib_send_bw. The server responds when it has received all
// messages.
func (d *datagrams) sendAll(line *cli.Progress) error {
	count := uint64(d.options.Trips)
	elapsed, err := traffic.SendSome(d.Context(), d.endpoint, d.exchange.Peer[0].Addr(), d.test, count, d.options.Rate, line)
	if err != nil {
		return err
	}
	err = d.Handshake(func(io.ReadWriter) error { return d.exchange.End() })
	if sends := d.checkSilence(); sends != nil && d.Context().Err() == nil {
		return sends
	}
	if meet.IsTimeout(err) || errors.Is(err, unix.ETIMEDOUT) {
		return fmt.Errorf("sent %d messages; %s has not confirmed all within %v (%s): check that it uses the same -n, and not -D; it waits forever for lost ones and must be "+
			"stopped; --rate, or its -r at least -n, reduces losses: %w", count, d.options.Program(), d.Timeout, d.device.DropsSince(d.before), unix.ETIMEDOUT)
	}
	if err != nil {
		return err
	}
	return d.addSent(count, elapsed)
}

// checkSilence checks that the server has sent no messages. ib_send_bw does so with -b and
// --reversed, and then its response does not mean that it received all messages. Messages may still
// be in flight after the response, so checkSilence waits briefly.
func (d *datagrams) checkSilence() error {
	quiet, cancel := context.WithTimeout(d.Context(), traffic.QuietTime)
	defer cancel()
	var messages [card.Batch]ud.Message
	n, err := d.endpoint.Receive(quiet, true, messages[:])
	switch {
	case n == 0 && quiet.Err() != nil:
		return nil
	case n == 0:
		return err
	}
	return fmt.Errorf("%s sends messages itself: it was started with -b or --reversed, which roced perf does not support; start it without them: %w",
		d.options.Program(), unix.EPROTONOSUPPORT)
}
