package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

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
		err = fmt.Errorf("%w; was %s given the same -n and -s? It waits forever, and must be stopped", p.explain(r.device, r.before), r.binary())
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
	if isTimeout(err) || errors.Is(err, unix.ETIMEDOUT) {
		return fmt.Errorf("sent %d messages; %s has not said within %v that it has them all (%s): was it given the same -n? It waits forever for lost ones, and must be "+
			"stopped; fewer are lost with --rate, or with its -r as high as -n: %w", count, r.binary(), r.timeout, r.device.dropsSince(r.before), unix.ETIMEDOUT)
	}
	if err != nil {
		return err
	}
	r.addBandwidth(elapsed, outcome{Received: count})
	return nil
}

// addBandwidth reports what this side knows: no rate of the other one.
func (r *perftestRun) addBandwidth(sending time.Duration, o outcome) {
	result := newBandwidthResult(r.test.Size, uint64(r.options.trips), sending, o)
	result.addDrops(nil, o.Drops)
	result.LinkDrops = bySide(nil, o.Link)
	r.report.Bandwidth = append(r.report.Bandwidth, result)
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
	after, err := r.device.counters()
	if err != nil {
		return err
	}
	changed := since(r.before, after)
	r.addBandwidth(0, outcome{Received: a.packets, Elapsed: a.elapsed(), Drops: losses(changed), Link: linkLosses(changed)})
	err = r.handshake(func(io.ReadWriter) error { return r.exchange.end() })
	if a.packets != count {
		err = errors.Join(fmt.Errorf("%d messages came, not %d (%s); was %s given the same -n?", a.packets, count, r.device.dropsSince(r.before), r.binary()), err)
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
			return fmt.Errorf("%d messages came, and nothing more for %v (%s): %w", a.packets, r.timeout, r.device.dropsSince(r.before), unix.ETIMEDOUT)
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
