package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// quietTime is how long nothing must arrive until the rest is given up as lost.
const quietTime = 100 * time.Millisecond

// arrivals is the server's half: it counts.
type arrivals struct {
	size        int // of each message; another is EMSGSIZE
	packets     uint64
	first, last time.Time
	messages    [card.Batch]ud.Message
}

// countUntil counts until ctx is done.
func (a *arrivals) countUntil(ctx context.Context, e *card.Endpoint, sleep bool) error {
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
func (a *arrivals) drain(ctx context.Context, e *card.Endpoint, sent uint64) error {
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

// drainFor is drain, for so long: strangers who go on sending do not keep it.
func (a *arrivals) drainFor(ctx context.Context, e *card.Endpoint, sent uint64, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := a.drain(limited, e, sent)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

func (a *arrivals) take(ctx context.Context, e *card.Endpoint, sleep bool) error {
	n, err := e.Receive(ctx, sleep, a.messages[:])
	if err != nil {
		return err
	}
	defer e.Release(a.messages[:n])
	a.last = time.Now()
	if a.packets == 0 {
		a.first = a.last
	}
	a.packets += uint64(n)
	for i := range a.messages[:n] {
		if err := a.check(&a.messages[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *arrivals) check(m *ud.Message) error {
	if size := len(m.Data); size != a.size {
		return fmt.Errorf("a message of %d bytes, not %d; give both sides the same -s: %w", size, a.size, unix.EMSGSIZE)
	}
	return nil
}

func (a *arrivals) elapsed() time.Duration { return a.last.Sub(a.first) }
