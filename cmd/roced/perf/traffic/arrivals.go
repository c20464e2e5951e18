package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// QuietTime is how long nothing must arrive until the rest is given up as lost.
const QuietTime = 100 * time.Millisecond

// Arrivals is the server's half: it counts.
type Arrivals struct {
	Size        int // of each message; another is EMSGSIZE
	Packets     uint64
	first, last time.Time
	messages    [card.Batch]ud.Message
}

// CountUntil counts until ctx is done.
func (a *Arrivals) CountUntil(ctx context.Context, e *card.Endpoint, sleep bool) error {
	for {
		if err := a.Take(ctx, e, sleep); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// drain counts what is still on its way, until all that was sent is there or nothing comes.
func (a *Arrivals) drain(ctx context.Context, e *card.Endpoint, sent uint64) error {
	for a.Packets < sent {
		quiet, cancel := context.WithTimeout(ctx, QuietTime)
		err := a.Take(quiet, e, true)
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

// DrainFor is drain, for so long: strangers who go on sending do not keep it.
func (a *Arrivals) DrainFor(ctx context.Context, e *card.Endpoint, sent uint64, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := a.drain(limited, e, sent)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil
	}
	return err
}

func (a *Arrivals) Take(ctx context.Context, e *card.Endpoint, sleep bool) error {
	n, err := e.Receive(ctx, sleep, a.messages[:])
	if err != nil {
		return err
	}
	defer e.Release(a.messages[:n])
	a.last = time.Now()
	if a.Packets == 0 {
		a.first = a.last
	}
	a.Packets += uint64(n)
	for i := range a.messages[:n] {
		if err := a.check(&a.messages[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *Arrivals) check(m *ud.Message) error {
	if size := len(m.Data); size != a.Size {
		return fmt.Errorf("a message of %d bytes, not %d; give both sides the same -s: %w", size, a.Size, unix.EMSGSIZE)
	}
	return nil
}

func (a *Arrivals) Elapsed() time.Duration { return a.last.Sub(a.first) }
