package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

const (
	// tripTimeout is when a round trip counts as lost, and the next one starts.
	tripTimeout = 100 * time.Millisecond
	// maxLostTrips in a row are a peer that does not answer.
	maxLostTrips = 30
	// warmUpTrips come first and are not measured: they fault pages in and wake everything.
	warmUpTrips = 100
)

// errTripLost is not an error of the run.
var errTripLost = errors.New("no answer in time")

// pinger is the client's half of a latency test: one message at a time, with its
// number as immediate data. What the server sends back has the same number, so that
// an answer that comes late, or twice, is known as such.
type pinger struct {
	e           *endpoint
	sleep       bool
	number      uint32
	lost        int
	completions [batch]verbs.WC
}

// measure gives the times of full round trips.
func (p *pinger) measure(ctx context.Context, size, trips int, progress *progress) ([]time.Duration, error) {
	p.e.shape(size, verbs.WRSendWithImm)
	if _, err := p.trips(ctx, min(warmUpTrips, trips), progress); err != nil {
		return nil, err
	}
	p.lost = 0
	return p.trips(ctx, trips, progress)
}

func (p *pinger) trips(ctx context.Context, trips int, progress *progress) ([]time.Duration, error) {
	times := make([]time.Duration, 0, trips)
	inARow := 0
	for range trips {
		took, err := p.trip(ctx)
		switch {
		case err == nil:
			times = append(times, took)
			inARow = 0
		case errors.Is(err, errTripLost) && inARow < maxLostTrips:
			p.lost++
			inARow++
		case errors.Is(err, errTripLost):
			return times, fmt.Errorf("%d round trips in a row without an answer: %w", inARow, unix.ETIMEDOUT)
		default:
			return times, err
		}
		progress.add(1)
	}
	return times, nil
}

// trip makes one round trip. What is not part of it stays outside of the measured time.
func (p *pinger) trip(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tripTimeout, errTripLost)
	defer cancel()
	p.number++
	_, wr := p.e.sendBuffer(0)
	wr.ImmData = p.number
	start := time.Now()
	if err := p.e.postSends(1); err != nil {
		return 0, err
	}
	if err := p.await(ctx); err != nil {
		return 0, errors.Join(err, p.e.reap())
	}
	took := time.Since(start)
	return took, p.e.reap()
}

// await waits for the answer, and passes over late ones, second ones, and other senders'.
func (p *pinger) await(ctx context.Context) error {
	for {
		n, err := p.e.receive(ctx, p.sleep, p.completions[:])
		if err != nil {
			return err
		}
		answered := slices.ContainsFunc(p.completions[:n], p.isAnswer)
		if err := p.e.postRecvs(n); err != nil || answered {
			return err
		}
	}
}

func (p *pinger) isAnswer(wc verbs.WC) bool {
	return wc.Flags&verbs.WCWithImm != 0 && wc.ImmData == p.number && p.e.isFromPeer(&wc)
}

// echoUntil is the server's half: it sends back what comes, until ctx is done.
func echoUntil(ctx context.Context, e *endpoint, t test) (packets uint64, err error) {
	var completions [batch]verbs.WC
	e.shape(t.Size, verbs.WRSendWithImm)
	for {
		n, err := e.receive(ctx, t.Sleep, completions[:])
		if ctx.Err() != nil {
			return packets, nil
		}
		if err == nil {
			err = e.echo(completions[:n])
		}
		if err != nil {
			return packets, err
		}
		packets += uint64(n)
	}
}

func (e *endpoint) echo(wcs []verbs.WC) error {
	for i := range wcs {
		_, wr := e.sendBuffer(i)
		wr.ImmData = wcs[i].ImmData
	}
	if err := e.postSends(len(wcs)); err != nil {
		return err
	}
	if err := e.postRecvs(len(wcs)); err != nil {
		return err
	}
	return e.reap()
}

// percentile is the smallest of the sorted times that so many percent do not exceed.
func percentile(sorted []time.Duration, percent float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(percent / 100 * float64(len(sorted)))
	if float64(rank) < percent/100*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}
