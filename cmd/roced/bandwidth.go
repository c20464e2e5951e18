package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/datapath/wire"
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

// sendSome sends so many messages, at a rate or as fast as the card takes them, and
// returns when all sends have completed.
func sendSome(ctx context.Context, e *endpoint, t test, count uint64, rate int, p *progress) (elapsed time.Duration, err error) {
	e.shape(t.Size, verbs.WRSend)
	pace := pace{start: time.Now(), rate: rate}
	for sent := uint64(0); sent < count; {
		if err := e.reapUntil(ctx, t.Sleep, batch); err != nil {
			return 0, err
		}
		n := min(batch, count-sent)
		if rate > 0 {
			n = min(n, pace.wait(sent))
		}
		if err := errors.Join(context.Cause(ctx), e.postSends(int(n))); err != nil {
			return 0, err
		}
		sent += n
		p.add(n)
	}
	err = e.reapAll(ctx, t.Sleep)
	return time.Since(pace.start), err
}

// pace spreads messages over time.
type pace struct {
	start time.Time
	rate  int // messages a second
}

// wait rests until a message is due, for a while at most, and says how many are.
func (p *pace) wait(sent uint64) uint64 {
	due := time.Duration(float64(sent) / float64(p.rate) * float64(time.Second))
	time.Sleep(min(due-time.Since(p.start), maxRest))
	return uint64(max(0, time.Since(p.start).Seconds()*float64(p.rate)+1-float64(sent)))
}

// maxRest bounds for how long the end of a context goes unnoticed.
const maxRest = 10 * time.Millisecond

// arrivals is the server's half: it counts.
type arrivals struct {
	size        int // of each message; another is EMSGSIZE
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
	for i := range a.completions[:n] {
		if err := a.check(&a.completions[i]); err != nil {
			return err
		}
	}
	return e.postRecvs(n)
}

func (a *arrivals) check(wc *verbs.WC) error {
	if size := int(wc.ByteLen) - wire.GRHLen; size != a.size {
		return fmt.Errorf("a message of %d bytes, not %d; give both sides the same -s: %w", size, a.size, unix.EMSGSIZE)
	}
	return nil
}

func (a *arrivals) elapsed() time.Duration { return a.last.Sub(a.first) }
