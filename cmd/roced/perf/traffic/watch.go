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
	// QuietLimit is how long a client may send nothing until the server turns to the next one.
	QuietLimit = 30 * time.Second
	// spinLimit is how long nothing comes until the server sleeps, though it was to spin.
	spinLimit = time.Second
	// glance is how often the server looks how long it has been quiet.
	glance = 100 * time.Millisecond
)

// Take waits for messages, asleep or spinning, and counts them.
type Take func(ctx context.Context, sleep bool) error

// Shown is a Take whose messages, as it counts them in taken, a line shows too.
func (take Take) Shown(taken *uint64, line *cli.Progress) Take {
	return func(ctx context.Context, sleep bool) error {
		before := *taken
		err := take(ctx, sleep)
		line.Add(*taken - before)
		return err
	}
}

// Watch has the server wait for messages, but not forever.
type Watch struct {
	Take  Take
	Taken *uint64       // what it counts in
	Limit time.Duration // QuietLimit, but for tests
}

// Until takes messages until ctx is done. The error of a silent client is ETIMEDOUT.
func (w *Watch) Until(ctx context.Context, sleep bool) error {
	last := time.Now()
	for ctx.Err() == nil {
		quiet, before := time.Since(last), *w.Taken
		if quiet >= w.Limit {
			return fmt.Errorf("the client has sent nothing for %v, neither a datagram nor a word: %w", w.Limit, unix.ETIMEDOUT)
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

// takeFor takes messages for a glance. The end of a context is no error.
func (w *Watch) takeFor(ctx context.Context, sleep bool) (err error) {
	wait, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	for err == nil {
		err = w.Take(wait, sleep)
	}
	if errors.Is(err, context.Cause(wait)) || errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}
