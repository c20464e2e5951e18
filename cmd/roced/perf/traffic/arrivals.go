// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// QuietTime is the time without arrivals after which missing messages count as lost.
const QuietTime = 100 * time.Millisecond

// quietWaits is the number of waits that QuietTime consists of. A busy host may suspend the process for longer than
// QuietTime. Only one wait ends then, and messages can arrive in the others.
const quietWaits = 5

// Drain receives the messages in flight after the client has sent all: until sent are received, or none arrives for
// QuietTime. Messages of other senders do not extend it beyond limit.
func Drain(ctx context.Context, take Take, taken *uint64, sent uint64, limit time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for waits := 0; *taken < sent; {
		quiet, cancel := context.WithTimeout(limited, QuietTime/quietWaits)
		err := take(quiet, true)
		over := quiet.Err() != nil && errors.Is(err, context.Cause(quiet))
		cancel()
		switch {
		case over && (waits == quietWaits-1 || limited.Err() != nil):
			return context.Cause(ctx)
		case over:
			waits++
		case err != nil:
			return err
		default:
			waits = 0
		}
	}
	return nil
}

// Arrivals counts the server's messages.
type Arrivals struct {
	Size        int           // of each message; another size is EMSGSIZE
	Line        *cli.Progress // nil for none
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

// DrainFor is Drain for datagrams.
func (a *Arrivals) DrainFor(ctx context.Context, e *card.Endpoint, sent uint64, limit time.Duration) error {
	take := func(ctx context.Context, sleep bool) error { return a.Take(ctx, e, sleep) }
	return Drain(ctx, take, &a.Packets, sent, limit)
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
	a.Line.Add(uint64(n))
	for i := range a.messages[:n] {
		if err := a.check(&a.messages[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *Arrivals) check(m *ud.Message) error {
	if size := len(m.Data); size != a.Size {
		return fmt.Errorf("received a message of %d bytes, want %d; use the same -s on both sides: %w", size, a.Size, unix.EMSGSIZE)
	}
	return nil
}

func (a *Arrivals) Elapsed() time.Duration { return a.last.Sub(a.first) }
