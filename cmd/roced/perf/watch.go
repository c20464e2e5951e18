package perf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// quietLimit is how long a client may send nothing until the server turns to the next one.
	quietLimit = 30 * time.Second
	// spinLimit is how long nothing comes until the server sleeps, though it was to spin.
	spinLimit = time.Second
	// glance is how often the server looks how long it has been quiet.
	glance = 100 * time.Millisecond
)

// watch has the server wait for messages, but not forever.
type watch struct {
	take  func(ctx context.Context, sleep bool) error // waits for some, and counts them
	taken *uint64                                     // what it counts in
	limit time.Duration                               // quietLimit
}

// until takes messages until ctx is done. The error of a silent client is ETIMEDOUT.
func (w *watch) until(ctx context.Context, sleep bool) error {
	last := time.Now()
	for ctx.Err() == nil {
		quiet, before := time.Since(last), *w.taken
		if quiet >= w.limit {
			return fmt.Errorf("the client has sent nothing for %v, neither a datagram nor a word: %w", w.limit, unix.ETIMEDOUT)
		}
		if err := w.takeFor(ctx, sleep || quiet >= spinLimit); err != nil {
			return err
		}
		if *w.taken != before {
			last = time.Now()
		}
	}
	return nil
}

// takeFor takes messages for a glance. The end of a context is no error.
func (w *watch) takeFor(ctx context.Context, sleep bool) (err error) {
	wait, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	for err == nil {
		err = w.take(wait, sleep)
	}
	if errors.Is(err, context.Cause(wait)) || errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}
