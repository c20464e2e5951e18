// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"golang.org/x/sys/unix"
)

const (
	// QuietLimit is the time without messages after which the server drops a client and serves the
	// next one.
	QuietLimit = 30 * time.Second
	// spinLimit is the time without messages after which a spinning server sleeps.
	spinLimit = time.Second
	// checkInterval is the interval at which the server checks these limits.
	checkInterval = 100 * time.Millisecond
)

// Take waits for messages, sleeping or spinning, and counts them.
type Take func(ctx context.Context, sleep bool) error

// Shown returns a Take that also shows the count, taken, on a progress line.
func (take Take) Shown(taken *uint64, line *cli.Progress) Take {
	return func(ctx context.Context, sleep bool) error {
		before := *taken
		err := take(ctx, sleep)
		line.Add(*taken - before)
		return err
	}
}

// Watch limits the time that a server waits for messages.
type Watch struct {
	Take  Take
	Taken *uint64       // the count of messages
	Limit time.Duration // QuietLimit, except in tests
}

// Until receives messages until ctx is done. It returns ETIMEDOUT if the client is silent.
func (w *Watch) Until(ctx context.Context, sleep bool) error {
	last := time.Now()
	for ctx.Err() == nil {
		quiet, before := time.Since(last), *w.Taken
		if quiet >= w.Limit {
			return fmt.Errorf("the client has sent no datagram and no message for %v: %w", w.Limit, unix.ETIMEDOUT)
		}
		if err := w.takeFor(ctx, sleep || quiet >= spinLimit); err != nil {
			return err
		}
		if *w.Taken != before {
			last = time.Now()
		}
	}
	return nil
}

// takeFor receives messages for one checkInterval. The end of its own context is not an error.
func (w *Watch) takeFor(ctx context.Context, sleep bool) (err error) {
	wait, cancel := context.WithTimeout(ctx, checkInterval)
	defer cancel()
	for err == nil {
		err = w.Take(wait, sleep)
	}
	if errors.Is(err, context.Cause(wait)) || errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}
