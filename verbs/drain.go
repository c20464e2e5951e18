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
	// closeTimeout is how long Close waits for posted sends to leave.
	closeTimeout = time.Second
	// drainTries is how often Drain looks before it sleeps between looks, for drainPause each.
	drainTries = 100
	drainPause = 100 * time.Microsecond
)

// Drain waits until all posted send requests are carried out: handed to the interface, dropped by
// the card and counted, or flushed; those of an RC queue pair answered by the peer, or failed. Completions of signaled ones are in the CQ then. It is the way
// to learn that unsignaled requests were sent and that their slots are free (see ErrQueueFull).
// ErrState in SQD, in which the card sends nothing.
//
// It says nothing of whether the device still works: when that has failed, requests that the card had
// taken are carried out or flushed, and nil says so; ErrDeviceFatal is for those that it will not take.
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
	// The card has taken the last request, but may not have finished the round that sends and
	// completes it. A command waits until that round has ended.
	_, _ = provider.Do(q.ctx.provider, provider.QueryQP, provider.QueryQPRequest{QP: q.handle})
	return nil
}

// awaitSent waits until the card has taken all send requests.
func (q *QP) awaitSent(ctx context.Context) error { return q.await(ctx, q.unsent) }

// await waits until nothing is left.
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

// unsent is how many requests the card has not taken, and an error if it will not take them.
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
		err = fmt.Errorf("drain QP %v: %w: SQD holds %d send requests back; Modify to RTS sends them", q.number, ErrState, left)
	}
	return left, err
}

// drainToClose waits until posted sends have left, for closeTimeout at most. DestroyQP drops those that are
// left. Of an RC queue pair the peer's answers are not waited for: it may be dead.
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

// unpolledSends is how many send requests have no completion that was polled.
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

// lost is why completions will not come, or will not be counted.
func (q *QP) lost() error {
	if q.closed.Load() {
		return fmt.Errorf("drain: %w: the QP", ErrObjectClosed)
	}
	if err := q.ctx.gone(); errors.Is(err, ErrClosed) {
		return fmt.Errorf("drain QP %v: %w", q.number, err)
	}
	return nil
}
