package verbs

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

const (
	// closePatience is how long Close waits for a card that does not send.
	closePatience = time.Second
	// drainTries is how often Drain looks before it begins to sleep, drainPause for how long then.
	drainTries = 100
	drainPause = 100 * time.Microsecond
)

// Drain waits until all send requests that have been posted are carried out: handed to
// the interface, dropped by the card and counted, or flushed; what completes has its completion in
// the CQ then. Unsignaled ones need no other way to learn that they are sent, nor that their
// slots are free (see ErrQueueFull).
// ErrState in SQD, which holds requests back.
func (q *QP) Drain(ctx context.Context) error {
	if err := checkContext(ctx); err != nil {
		return fmt.Errorf("drain QP: %w", err)
	}
	if err := q.awaitSent(ctx); err != nil {
		return err
	}
	// The card has taken the last request, and may still be in the round that sends it, and
	// completes it: a command waits for the end of that.
	_, _ = q.ctx.provider.QueryQP(QueryQPRequest{q.handle})
	return nil
}

// awaitSent waits until the card has taken all send requests.
func (q *QP) awaitSent(ctx context.Context) error {
	for tries := 0; ; tries++ {
		if left, err := q.unsent(); left == 0 || err != nil {
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

// unsent is how many requests the card has not taken, and why it will not.
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
	case q.State() == QPStateSQD:
		err = fmt.Errorf("drain QP %v: %w: SQD holds %d send requests back; Modify to RTS sends them", q.number, ErrState, left)
	}
	return left, err
}

// drainToClose is Drain with an end.
func (q *QP) drainToClose() {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	_ = q.awaitSent(ctx) // what has not left then is dropped
}
