package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// measure sends and receives, and prints the report also of what failed, if there is one.
func (r *perftestRun) measure() error {
	line := startProgress(r.options.errOut, fmt.Sprintf("%s of %d bytes", r.test.Kind, r.test.Size))
	work := r.exchangeMessages
	switch {
	case r.test.Kind == bandwidth && r.exchange.client:
		work = r.sendAll
	case r.test.Kind == bandwidth:
		work = r.receiveAll
	}
	err := work(line)
	line.end()
	return errors.Join(err, r.report.print(r.options))
}

// exchangeMessages is either side of ib_send_lat.
func (r *perftestRun) exchangeMessages(line *progress) error {
	p := &pingpong{
		e: r.endpoint, begins: r.exchange.client, size: r.test.Size, count: r.options.trips, timeout: r.timeout, sleep: r.test.Sleep,
	}
	if !r.exchange.peer.isGroup() {
		p.peer = r.exchange.peer.QPN // else it is not told
	}
	err := p.run(r.ctx, line)
	if errors.Is(err, errNothingCame) {
		err = fmt.Errorf("%w; was %s given the same -n and -s, and not -D? It waits forever, and must be stopped", p.explain(r.device, r.before), r.binary())
	}
	if err != nil {
		return err
	}
	trips := p.trips
	if r.exchange.client {
		trips = trips[1:] // until the first answer, perftest measures its processor's clock
	}
	r.report.Latency = append(r.report.Latency, newLatencyResult(r.test.Size, 0, trips))
	return r.handshake(func(io.ReadWriter) error {
		if !r.exchange.client {
			if err := r.exchange.awaitEnd(); err != nil {
				return err
			}
		}
		return r.exchange.end()
	})
}

// sendAll is the client of ib_send_bw. The server answers when it has received all.
func (r *perftestRun) sendAll(line *progress) error {
	count := uint64(r.options.trips)
	elapsed, err := sendSome(r.ctx, r.endpoint, r.test, count, r.options.rate, line)
	if err != nil {
		return err
	}
	err = r.handshake(func(io.ReadWriter) error { return r.exchange.end() })
	if sends := r.checkSilence(); sends != nil && r.ctx.Err() == nil {
		return sends
	}
	if isTimeout(err) || errors.Is(err, unix.ETIMEDOUT) {
		return fmt.Errorf("sent %d messages; %s has not said within %v that it has them all (%s): was it given the same -n, and not -D? It waits forever for lost ones, and must be "+
			"stopped; fewer are lost with --rate, or with its -r as high as -n: %w", count, r.binary(), r.timeout, r.device.dropsSince(r.before), unix.ETIMEDOUT)
	}
	if err != nil {
		return err
	}
	return r.addSent(count, elapsed)
}

// checkSilence insists that the server has sent nothing, as ib_send_bw does with -b and with
// --reversed: then it is not what it received that made it answer.
func (r *perftestRun) checkSilence() error {
	var wcs [batch]verbs.WC
	n, err := r.endpoint.arrived(wcs[:])
	if n == 0 {
		return err
	}
	return fmt.Errorf("%s sends messages itself: it was started with -b or --reversed, of which roced perf has neither; start it without: %w",
		r.binary(), unix.EPROTONOSUPPORT)
}

// addSent reports what a sender knows.
func (r *perftestRun) addSent(sent uint64, elapsed time.Duration) error {
	b := bandwidthResult{Size: r.test.Size, NotMeasured: r.notTold("received")}
	b.addSent(sent, elapsed)
	drops, link, err := r.losses()
	b.Drops, b.LinkDrops = bySide(drops, nil), bySide(link, nil)
	r.report.Bandwidth = append(r.report.Bandwidth, b)
	return err
}

// addReceived reports what a receiver knows.
func (r *perftestRun) addReceived(a *arrivals) error {
	b := bandwidthResult{Size: r.test.Size, NotMeasured: r.notTold("sent")}
	b.addReceived(outcome{Received: a.packets, Elapsed: a.elapsed()})
	drops, link, err := r.losses()
	b.Drops, b.LinkDrops = bySide(nil, drops), bySide(nil, link)
	r.report.Bandwidth = append(r.report.Bandwidth, b)
	return err
}

// notTold says why half of a result is missing.
func (r *perftestRun) notTold(what string) string {
	return fmt.Sprintf("not measured: what was %s, and so what was lost; perftest tells it to nobody but who reads what %s prints", what, r.binary())
}

// losses is what was dropped on this side.
func (r *perftestRun) losses() (drops, link map[string]uint64, err error) {
	after, err := r.device.counters()
	if err != nil {
		return nil, nil, err
	}
	changed := since(r.before, after)
	return losses(changed), linkLosses(changed), nil
}

// receiveAll is the server of ib_send_bw. Where that waits forever for what was lost, this
// one lets the client end as if nothing had been, and reports it as an error.
func (r *perftestRun) receiveAll(*progress) error {
	a := arrivals{size: r.test.Size}
	if err := r.receiveUntilEnd(&a); err != nil {
		return err
	}
	count := uint64(r.options.trips)
	if err := r.receiveRest(&a); err != nil {
		return err
	}
	if err := r.addReceived(&a); err != nil {
		return err
	}
	err := r.handshake(func(io.ReadWriter) error { return r.exchange.end() })
	if a.packets != count {
		err = errors.Join(fmt.Errorf("%d messages came, not %d (%s); was %s given the same -n, and not -D?", a.packets, count, r.device.dropsSince(r.before), r.binary()), err)
	}
	return err
}

// receiveUntilEnd counts until the client says that it has sent all.
func (r *perftestRun) receiveUntilEnd(a *arrivals) error {
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	word := make(chan error, 1)
	go func() {
		word <- r.exchange.awaitEnd()
		stop()
	}()
	for ctx.Err() == nil {
		packets := a.packets
		if err := r.countFor(ctx, a, r.timeout); err != nil {
			return err
		}
		if ctx.Err() == nil && a.packets == packets {
			return fmt.Errorf("%d messages came, and nothing more for %v (%s)%s: %w", a.packets, r.timeout, r.device.dropsSince(r.before), r.suspicion(a.packets), unix.ETIMEDOUT)
		}
	}
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if err := <-word; err != nil {
		return r.explain(err)
	}
	return nil
}

// suspicion is why a client says nothing though it should: it waits for messages itself.
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

// receiveRest counts what is still on its way, however much that is: the client has not
// said how many it sent. Strangers who go on sending do not keep it.
func (r *perftestRun) receiveRest(a *arrivals) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.timeout)
	defer cancel()
	err := a.drain(ctx, r.endpoint, math.MaxUint64)
	if errors.Is(err, context.DeadlineExceeded) && r.ctx.Err() == nil {
		return nil
	}
	return err
}

func (r *perftestRun) countFor(ctx context.Context, a *arrivals, duration time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	return a.countUntil(ctx, r.endpoint, r.test.Sleep)
}
