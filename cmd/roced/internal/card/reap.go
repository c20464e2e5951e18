package card

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Reap takes the completions of sends that there are.
func (e *Endpoint) Reap() error {
	n, err := e.sendCQ.Poll(e.done[:])
	return e.settle(n, err)
}

// ReapSome waits for completions of sends.
func (e *Endpoint) ReapSome(ctx context.Context, sleep bool) error {
	n, err := await(ctx, e.sendCQ, sleep, e.done[:])
	return e.settle(n, err)
}

// ReapAll waits until all that was sent has completed.
func (e *Endpoint) ReapAll(ctx context.Context, sleep bool) error {
	return e.ReapUntil(ctx, sleep, len(e.sends))
}

// ReapUntil waits until n sends can be posted. That takes microseconds.
func (e *Endpoint) ReapUntil(ctx context.Context, sleep bool, n int) error {
	if e.Idle() >= n {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, StallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	for e.Idle() < n {
		if err := e.ReapSome(ctx, sleep); err != nil {
			return err
		}
	}
	return nil
}

func (e *Endpoint) settle(n int, err error) error {
	for i := range e.done[:n] {
		if err := e.done[i].Err(); err != nil {
			e.failed = true
			return fmt.Errorf("send: %w", e.Device.explain(err))
		}
		e.sending -= int(e.done[i].ID)
	}
	return err
}

// closeTimeout is how long what was posted may take to leave before the queue pair is destroyed.
const closeTimeout = time.Second

// awaitSent waits until all that was posted has left. It says so if that cannot be; sends
// that have failed have been told of.
func (e *Endpoint) awaitSent() error {
	cause := fmt.Errorf("not all that was posted has left within %v; is the link of %s up? %w", closeTimeout, e.Device.Attr.Name, unix.ETIMEDOUT)
	ctx, cancel := context.WithTimeoutCause(context.Background(), closeTimeout, cause)
	defer cancel()
	for e.sending > 0 && !e.failed {
		if err := e.ReapSome(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

// StallTimeout is how long a message of the demo may take. It takes microseconds.
const StallTimeout = 5 * time.Second
