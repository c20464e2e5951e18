package kernel

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// DrainSQ brings the queue pair to ERR and waits until the completions of all its send requests have been polled
// (ib_drain_sq). Like the kernel it polls nothing: another goroutine or a CompHandler has to, or it waits until ctx is
// done. The program must not post meanwhile. No marker request is posted, and no room for one is needed: a queue pair
// counts what has been polled.
func DrainSQ(ctx context.Context, q *verbs.QP) error { return drainToErr(ctx, q, false) }

// DrainRQ is DrainSQ for the receives (ib_drain_rq). ErrInvalid for a queue pair with an SRQ, whose receives stay
// there: EventQPLastWQEReached reports that it takes no more.
func DrainRQ(ctx context.Context, q *verbs.QP) error {
	if q != nil && !in.HasReceives(q) {
		return fmt.Errorf("drain QP %v: %w: its receives are an SRQ's; wait for EventQPLastWQEReached", q.Number(), verbs.ErrInvalid)
	}
	return drainToErr(ctx, q, true)
}

// DrainQP is DrainSQ, and DrainRQ unless there is an SRQ (ib_drain_qp).
func DrainQP(ctx context.Context, q *verbs.QP) error {
	err := DrainSQ(ctx, q)
	if err == nil && in.HasReceives(q) {
		err = DrainRQ(ctx, q)
	}
	return err
}

func drainToErr(ctx context.Context, q *verbs.QP, receives bool) error {
	if ctx == nil || q == nil {
		return fmt.Errorf("drain QP: %w", errNil)
	}
	if err := q.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return in.AwaitPolled(ctx, q, receives)
}
