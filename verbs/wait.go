// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
)

// Wait is Poll, but waits for completions until ctx is done. It returns available completions even when ctx is done, so
// a loop that never empties the queue must check ctx itself. Several goroutines may wait on one queue. When the card is
// closed or fails, all of them are woken: they get the remaining completions, and then the error that Poll returns.
// When the queue is closed they get ErrObjectClosed. If wcs is empty, Wait does not wait, and returns 0 and the error
// of Poll: nil as long as more completions can come.
//
// Wait and notifications (ReqNotify) are independent: Wait consumes no notification of a completion channel, and causes
// none. Moderation (Modify) delays both.
//
// With an embedded card, a program that waits alone runs the card meanwhile, and sleeps on the card's sockets.
func (q *CQ) Wait(ctx context.Context, wcs []WC) (int, error) {
	if q == nil {
		return 0, fmt.Errorf("wait for CQ: %w", errNil)
	}
	if err := checkContext(ctx); err != nil {
		return 0, fmt.Errorf("wait for CQ: %w", err)
	}
	q.waiters.Add(1)
	defer q.wakeNext()
	for first := true; ; first = false {
		n, err := q.takeOrArm(wcs)
		if n > 0 && first && q.ctx.progress != nil {
			q.ctx.progress.NoteReady()
		}
		if n > 0 || err != nil || len(wcs) == 0 {
			return n, err
		}
		if err := q.sleep(ctx); err != nil {
			return 0, err
		}
	}
}

// sleep waits for an event, as the leader if possible.
func (q *CQ) sleep(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if q.ctx.progress != nil {
		q.ctx.progress.BeginWait()
		defer q.ctx.progress.EndWait()
	}
	if q.ctx.leader != nil && q.ctx.leader.Lead(ctx, q.events, q.closed) {
		return nil
	}
	select {
	case <-q.events:
	case <-q.closed:
	case <-q.ctx.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// takeOrArm polls without running the card. If the queue is empty it arms it and polls once more, since a completion
// may have arrived in between.
func (q *CQ) takeOrArm(wcs []WC) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.take(wcs)
	if n == 0 {
		q.queue.ArmWait()
		n = q.take(wcs)
	}
	return n, q.failure("wait for CQ", n)
}

// wakeNext wakes another waiting goroutine: an event wakes only one, which may not have dequeued all completions.
func (q *CQ) wakeNext() {
	if q.waiters.Add(-1) > 0 {
		q.wakeOne()
	}
}

func (q *CQ) wakeOne() {
	select {
	case q.events <- struct{}{}:
	default:
	}
}
