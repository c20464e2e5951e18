// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/roced/roced/verbs/provider"
)

const (
	// closeTimeout is the time that Close waits for posted sends to be sent.
	closeTimeout = time.Second
	// drainTries is the number of polls before Drain sleeps for drainPause between polls.
	drainTries = 100
	drainPause = 100 * time.Microsecond
)

// Drain waits until all posted send requests are finished: handed to the interface, dropped by the card and counted, or
// flushed; those of an RC queue pair acknowledged by the peer, or failed. The completions of signaled requests are then
// in the CQ. Drain is the way to wait until unsignaled requests are sent and their slots are free (see ErrQueueFull).
// ErrState in SQD, where the card sends nothing.
//
// Success does not mean that the device still works: after a failure of the device, Drain returns nil if the card
// finished or flushed all requests, and ErrDeviceFatal if it will not process some of them.
func (q *QP) Drain(ctx context.Context) error {
	if q == nil {
		return fmt.Errorf("drain QP: %w", errNil)
	}
	if err := checkContext(ctx); err != nil {
		return fmt.Errorf("drain QP: %w", err)
	}
	if q.target {
		return fmt.Errorf("drain QP: %w", errTarget)
	}
	if err := q.awaitSent(ctx); err != nil {
		return err
	}
	// The card has dequeued the last request, but may not have finished the round that sends and completes it. A
	// command waits until that round has ended.
	_, _ = provider.Do(q.ctx.provider, provider.QueryQP, provider.QueryQPRequest{QP: q.handle})
	return nil
}

// awaitSent waits until the card has dequeued all send requests.
func (q *QP) awaitSent(ctx context.Context) error { return q.await(ctx, q.unsent) }

// await waits until left returns 0.
func (q *QP) await(ctx context.Context, left func() (uint32, error)) error {
	for tries := 0; ; tries++ {
		if left, err := left(); left == 0 || err != nil {
			return err
		}
		if q.ctx.progress != nil {
			q.ctx.progress.Progress()
		}
		if tries < drainTries {
			runtime.Gosched()
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("drain QP %v: %w", q.number, ctx.Err())
		case <-time.After(drainPause):
		}
	}
}

// unsent returns the number of requests that the card has not dequeued, and an error if it will not dequeue them.
func (q *QP) unsent() (left uint32, err error) {
	q.sendMu.Lock()
	left = q.send.Waiting()
	q.sendMu.Unlock()
	gone := q.ctx.gone()
	switch {
	case q.closed.Load():
		return 0, fmt.Errorf("drain: %w: the QP", ErrObjectClosed)
	case left == 0:
	case gone != nil:
		err = fmt.Errorf("drain QP %v: %w", q.number, gone)
	case q.State() == QPStateSQD && !q.failedIn(QPStateSQD):
		err = fmt.Errorf("drain QP %v: %w: %d send requests wait in SQD; Modify to RTS sends them", q.number, ErrState, left)
	}
	return left, err
}

// drainToClose waits until posted sends are sent, for at most closeTimeout. DestroyQP drops the rest. It does not wait
// for acknowledgements of an RC peer, which may be dead.
func (q *QP) drainToClose() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if q.init.Type != QPTypeRC && q.init.Type != QPTypeXRCSend {
		_ = q.awaitSent(ctx)
		return
	}
	for {
		if left, err := q.unsent(); left == 0 || err != nil {
			return
		}
		if q.ctx.progress != nil {
			q.ctx.progress.Progress()
		}
		grant, err := provider.Do(q.ctx.provider, provider.QueryQP, provider.QueryQPRequest{QP: q.handle})
		if err != nil || !grant.Leaving {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(drainPause):
		}
	}
}

// unpolledSends returns the number of send requests whose completion has not been polled.
func (q *QP) unpolledSends() (left uint32, err error) {
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	return q.send.Outstanding(q.sendPolled.Load()), q.lost()
}

func (q *QP) unpolledReceives() (left uint32, err error) {
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	return q.recv.Outstanding(q.recvPolled.Load()), q.lost()
}

// lost returns the reason why completions will not come, or will not be counted.
func (q *QP) lost() error {
	if q.closed.Load() {
		return fmt.Errorf("drain: %w: the QP", ErrObjectClosed)
	}
	if err := q.ctx.gone(); errors.Is(err, ErrClosed) {
		return fmt.Errorf("drain QP %v: %w", q.number, err)
	}
	return nil
}
