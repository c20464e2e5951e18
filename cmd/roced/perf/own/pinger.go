// SPDX-License-Identifier: Apache-2.0

package own

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

const (
	// tripTimeout is the time after which a round trip counts as lost and the next one starts.
	tripTimeout = 100 * time.Millisecond
	// maxLostTrips is the number of consecutive losses after which the peer counts as unreachable.
	maxLostTrips = 30
	// warmUpTrips is the number of unmeasured trips at the start. They fault pages in and wake up
	// all threads.
	warmUpTrips = 100
)

// errTripLost reports a lost round trip. It does not end the run.
var errTripLost = errors.New("response timeout")

// pinger is the client's half of a latency test: one message at a time, with its sequence number as
// immediate data. The server returns the same number, so late and duplicate replies are recognised.
type pinger struct {
	e      *card.Endpoint
	peer   ud.Addr
	sleep  bool
	number uint32
	lost   int
	out    [1]ud.Message
	in     [card.Batch]ud.Message
}

// measure returns the times of full round trips.
func (p *pinger) measure(ctx context.Context, size, trips int, progress *cli.Progress) ([]time.Duration, error) {
	p.setSize(size)
	if _, err := p.trips(ctx, min(warmUpTrips, trips), progress); err != nil {
		return nil, err
	}
	p.lost = 0
	return p.trips(ctx, trips, progress)
}

// setSize sets the size of all messages, in bytes.
func (p *pinger) setSize(size int) {
	p.out[0] = ud.Message{To: p.peer, Data: make([]byte, size), HasImm: true}
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
			return times, fmt.Errorf("no response to %d consecutive round trips; %s: %w", inARow, card.Unanswered(len(p.out[0].Data)), unix.ETIMEDOUT)
		default:
			return times, err
		}
		progress.Add(1)
	}
	return times, nil
}

// trip makes one round trip. Setup is outside of the measured time.
func (p *pinger) trip(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, tripTimeout, errTripLost)
	defer cancel()
	p.number++
	p.out[0].Imm = p.number
	start := time.Now()
	if err := p.e.SendAll(ctx, p.out[:]); err != nil {
		return 0, err
	}
	if err := p.await(ctx); err != nil {
		return 0, err
	}
	return time.Since(start), nil
}

// await waits for the reply. It ignores late and duplicate replies, and messages of other senders.
func (p *pinger) await(ctx context.Context) error {
	for {
		n, err := p.e.Receive(ctx, p.sleep, p.in[:])
		if err != nil {
			return err
		}
		answered := slices.ContainsFunc(p.in[:n], p.isAnswer)
		p.e.Release(p.in[:n])
		if answered {
			return nil
		}
	}
}

func (p *pinger) isAnswer(m ud.Message) bool {
	return m.HasImm && m.Imm == p.number && m.From.GID == p.peer.GID && m.From.QPN == p.peer.QPN
}
