package main

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// quietTime is how long nothing must arrive until the rest is given up as lost.
const quietTime = 100 * time.Millisecond

// sendFor is the client's half of a bandwidth test: it sends as fast as the card takes
// it, and returns when all sends have completed.
func sendFor(ctx context.Context, e *endpoint, t test, duration time.Duration, p *progress) (sent uint64, elapsed time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, duration+stallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	e.shape(t.Size, verbs.WRSend)
	start := time.Now()
	for time.Since(start) < duration && err == nil {
		if e.idle() < batch {
			err = e.reapSome(ctx, t.Sleep)
			continue
		}
		if err = e.postSends(batch); err == nil {
			sent += batch
			p.add(batch)
		}
	}
	for e.sending > 0 && err == nil {
		err = e.reapSome(ctx, t.Sleep)
	}
	return sent, time.Since(start), err
}

// arrivals is the server's half: it counts.
type arrivals struct {
	packets     uint64
	first, last time.Time
	completions [batch]verbs.WC
}

// countUntil counts until ctx is done.
func (a *arrivals) countUntil(ctx context.Context, e *endpoint, sleep bool) error {
	for {
		if err := a.take(ctx, e, sleep); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// drain counts what is still on its way, until all that was sent is there or nothing comes.
func (a *arrivals) drain(ctx context.Context, e *endpoint, sent uint64) error {
	for a.packets < sent {
		quiet, cancel := context.WithTimeout(ctx, quietTime)
		err := a.take(quiet, e, true)
		over := quiet.Err() != nil
		cancel()
		if over {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *arrivals) take(ctx context.Context, e *endpoint, sleep bool) error {
	n, err := e.receive(ctx, sleep, a.completions[:])
	if err != nil {
		return err
	}
	a.last = time.Now()
	if a.packets == 0 {
		a.first = a.last
	}
	a.packets += uint64(n)
	return e.postRecvs(n)
}

func (a *arrivals) elapsed() time.Duration { return a.last.Sub(a.first) }
