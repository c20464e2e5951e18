// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// Copies returns a batch of messages of size bytes to one destination.
func Copies(to ud.Addr, size int) (messages [card.Batch]ud.Message) {
	data := make([]byte, size)
	for i := range messages {
		messages[i] = ud.Message{To: to, Data: data}
	}
	return messages
}

// SendFor is the client's half of a bandwidth test: it sends as fast as the card accepts messages,
// and returns when all are sent.
func SendFor(ctx context.Context, e *card.Endpoint, to ud.Addr, t protocol.Test, duration time.Duration, p *cli.Progress) (sent uint64, elapsed time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, duration+card.StallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	messages := Copies(to, t.Size)
	start := time.Now()
	for time.Since(start) < duration && err == nil {
		if err = e.SendAll(ctx, messages[:]); err == nil {
			sent += card.Batch
			p.Add(card.Batch)
		}
	}
	if err == nil {
		err = e.Finish(ctx)
	}
	return sent, time.Since(start), err
}

// SendSome sends count messages, at rate or as fast as the card accepts them, and returns when all
// are sent.
func SendSome(ctx context.Context, e *card.Endpoint, to ud.Addr, t protocol.Test, count uint64, rate int, p *cli.Progress) (elapsed time.Duration, err error) {
	messages := Copies(to, t.Size)
	pace := pace{start: time.Now(), rate: rate}
	for sent := uint64(0); sent < count; {
		n := min(card.Batch, count-sent)
		if rate > 0 {
			n = min(n, pace.wait(sent))
		}
		if err := e.SendAll(ctx, messages[:n]); err != nil {
			return 0, err
		}
		sent += n
		p.Add(n)
	}
	err = e.Finish(ctx)
	return time.Since(pace.start), err
}

// pace spreads messages over time.
type pace struct {
	start time.Time
	rate  int // messages per second
}

// wait sleeps until a message is due, but at most for maxRest, and returns the number of messages due.
func (p *pace) wait(sent uint64) uint64 {
	due := time.Duration(float64(sent) / float64(p.rate) * float64(time.Second))
	time.Sleep(min(due-time.Since(p.start), maxRest))
	return uint64(max(0, time.Since(p.start).Seconds()*float64(p.rate)+1-float64(sent)))
}

// maxRest limits the delay after which a done context is detected.
const maxRest = 10 * time.Millisecond
