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

// exchangeMessages is either side of ib_send_lat.
func (d *datagrams) exchangeMessages(line *cli.Progress) error {
	p := &pingpong.Exchange{
		Endpoint: d.endpoint, To: d.exchange.Peer[0].Addr(), Data: make([]byte, d.test.Size), Begins: d.exchange.Client, Size: d.test.Size, Count: d.options.Trips, Timeout: d.Timeout, Sleep: d.test.Sleep,
	}
	if !d.exchange.Peer[0].IsGroup() {
		p.Peer = d.exchange.Peer[0].QPN // else it is not told
	}
	err := p.Run(d.Context(), line)
	if errors.Is(err, pingpong.ErrNothingCame) {
		err = fmt.Errorf("%w; was %s given the same -n and -s, and not -D? It waits forever, and must be stopped", p.Explain(d.device, d.before), d.options.Program())
	}
	if err != nil {
		return err
	}
	trips := p.Trips
	if d.exchange.Client {
		trips = trips[1:] // until the first answer, perftest measures its processor's clock
	}
	d.report.Latency = append(d.report.Latency, report.NewLatencyResult(d.test.Size, 0, trips))
	return d.finish()
}

// sendAll is the client of ib_send_bw. The server answers when it has received all.
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
		return fmt.Errorf("sent %d messages; %s has not said within %v that it has them all (%s): was it given the same -n, and not -D? It waits forever for lost ones, and must be "+
			"stopped; fewer are lost with --rate, or with its -r as high as -n: %w", count, d.options.Program(), d.Timeout, d.device.DropsSince(d.before), unix.ETIMEDOUT)
	}
	if err != nil {
		return err
	}
	return d.addSent(count, elapsed)
}

// checkSilence checks that the server has sent no messages, as ib_send_bw does with -b and with
// --reversed. If it has, its answer does not mean that it received all messages. The server's last
// messages may still be on their way when its answer is there, so this waits for a moment.
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
	return fmt.Errorf("%s sends messages itself: it was started with -b or --reversed, which roced perf does not have; start it without them: %w",
		d.options.Program(), unix.EPROTONOSUPPORT)
}
