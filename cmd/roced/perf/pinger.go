package perf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
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
	e           *card.Endpoint
	sleep       bool
	number      uint32
	lost        int
	completions [card.Batch]verbs.WC
}

// measure gives the times of full round trips.
func (p *pinger) measure(ctx context.Context, size, trips int, progress *cli.Progress) ([]time.Duration, error) {
	p.e.Shape(size, verbs.WRSendWithImm)
	if _, err := p.trips(ctx, min(warmUpTrips, trips), progress); err != nil {
		return nil, err
	}
	p.lost = 0
	return p.trips(ctx, trips, progress)
}

func (p *pinger) trips(ctx context.Context, trips int, progress *cli.Progress) ([]time.Duration, error) {
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
		progress.Add(1)
	}
	return times, nil
}

// trip makes one round trip. What is not part of it stays outside of the measured time.
func (p *pinger) trip(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tripTimeout, errTripLost)
	defer cancel()
	p.number++
	_, wr := p.e.SendBuffer(0)
	wr.ImmData = p.number
	start := time.Now()
	if err := p.e.PostSends(1); err != nil {
		return 0, err
	}
	if err := p.await(ctx); err != nil {
		return 0, errors.Join(err, p.e.Reap())
	}
	took := time.Since(start)
	return took, p.e.Reap()
}

// await waits for the answer, and passes over late ones, second ones, and other senders'.
func (p *pinger) await(ctx context.Context) error {
	for {
		n, err := p.e.Receive(ctx, p.sleep, p.completions[:])
		if err != nil {
			return err
		}
		answered := slices.ContainsFunc(p.completions[:n], p.isAnswer)
		if err := p.e.PostRecvs(n); err != nil || answered {
			return err
		}
	}
}

func (p *pinger) isAnswer(wc verbs.WC) bool {
	return wc.Flags&verbs.WCWithImm != 0 && wc.ImmData == p.number && p.e.IsFromPeer(&wc)
}
