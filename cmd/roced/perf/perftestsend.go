package perf

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// measure sends and receives, and prints the report also of what failed, if there is one.
func (r *perftestRun) measure() error {
	line := cli.StartProgress(r.options.errOut, fmt.Sprintf("%s of %d bytes", r.test.Kind, r.test.Size))
	work := r.exchangeMessages
	switch {
	case r.test.Kind == bandwidth && r.exchange.Client:
		work = r.sendAll
	case r.test.Kind == bandwidth:
		work = r.receiveAll
	}
	err := work(line)
	line.End()
	return errors.Join(err, r.report.print(r.options))
}

// exchangeMessages is either side of ib_send_lat.
func (r *perftestRun) exchangeMessages(line *cli.Progress) error {
	p := &pingpong.Exchange{
		Endpoint: r.endpoint, To: r.exchange.Peer.Addr(), Data: make([]byte, r.test.Size), Begins: r.exchange.Client, Size: r.test.Size, Count: r.options.trips, Timeout: r.Timeout, Sleep: r.test.Sleep,
	}
	if !r.exchange.Peer.IsGroup() {
		p.Peer = r.exchange.Peer.QPN // else it is not told
	}
	err := p.Run(r.Context(), line)
	if errors.Is(err, pingpong.ErrNothingCame) {
		err = fmt.Errorf("%w; was %s given the same -n and -s, and not -D? It waits forever, and must be stopped", p.Explain(r.device, r.before), r.binary())
	}
	if err != nil {
		return err
	}
	trips := p.Trips
	if r.exchange.Client {
		trips = trips[1:] // until the first answer, perftest measures its processor's clock
	}
	r.report.Latency = append(r.report.Latency, newLatencyResult(r.test.Size, 0, trips))
	return r.Handshake(func(io.ReadWriter) error {
		if !r.exchange.Client {
			if err := r.exchange.AwaitEnd(); err != nil {
				return err
			}
		}
		return r.exchange.End()
	})
}

// sendAll is the client of ib_send_bw. The server answers when it has received all.
func (r *perftestRun) sendAll(line *cli.Progress) error {
	count := uint64(r.options.trips)
	elapsed, err := sendSome(r.Context(), r.endpoint, r.exchange.Peer.Addr(), r.test, count, r.options.rate, line)
	if err != nil {
		return err
	}
	err = r.Handshake(func(io.ReadWriter) error { return r.exchange.End() })
	if sends := r.checkSilence(); sends != nil && r.Context().Err() == nil {
		return sends
	}
	if meet.IsTimeout(err) || errors.Is(err, unix.ETIMEDOUT) {
		return fmt.Errorf("sent %d messages; %s has not said within %v that it has them all (%s): was it given the same -n, and not -D? It waits forever for lost ones, and must be "+
			"stopped; fewer are lost with --rate, or with its -r as high as -n: %w", count, r.binary(), r.Timeout, r.device.DropsSince(r.before), unix.ETIMEDOUT)
	}
	if err != nil {
		return err
	}
	return r.addSent(count, elapsed)
}

// checkSilence checks that the server has sent no messages, as ib_send_bw does with -b and with
// --reversed. If it has, its answer does not mean that it received all messages. The server's last
// messages may still be on their way when its answer is there, so this waits for a moment.
func (r *perftestRun) checkSilence() error {
	quiet, cancel := context.WithTimeout(r.Context(), quietTime)
	defer cancel()
	var messages [card.Batch]ud.Message
	n, err := r.endpoint.Receive(quiet, true, messages[:])
	switch {
	case n == 0 && quiet.Err() != nil:
		return nil
	case n == 0:
		return err
	}
	return fmt.Errorf("%s sends messages itself: it was started with -b or --reversed, of which roced perf has neither; start it without: %w",
		r.binary(), unix.EPROTONOSUPPORT)
}
