package verbs

import (
	"context"
	"fmt"
)

// Wait is Poll, but sleeps while there is nothing, until ctx is done. If there are completions it
// returns them even when ctx is done, so a loop that never empties the queue must look at ctx
// itself. Several goroutines may wait on one queue. When the card is closed or fails, all of them
// are woken: they get the completions that are left, and then the error that Poll gives. When the
// queue is closed they get ErrObjectClosed. With no room in wcs it does not sleep, and gives 0 and
// what Poll would say: nil as long as more completions can come.
//
// Wait and notifications (ReqNotify) are apart: Wait takes none from a completion channel, and causes
// none. Moderation (Modify) delays both.
//
// With an embedded card, a program that waits alone runs the card meanwhile, asleep on its sockets.
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

// sleep waits for an event, and if it can leads those who wait.
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

// takeOrArm polls without running the card. If there is nothing it arms the queue and polls once
// more, since a completion may have come in between.
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

// wakeNext wakes another waiter: an event wakes only one, which may not have taken everything.
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
