// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// DrainSQ changes the queue pair to ERR and waits until the completions of all its send requests have been polled
// (ib_drain_sq). Like the kernel it does not poll: unless another goroutine or a CompHandler polls, it waits until ctx
// is done. The program must not post meanwhile. DrainSQ posts no marker request and needs no room for one: a queue pair
// counts polled completions.
func DrainSQ(ctx context.Context, q *verbs.QP) error { return drainToErr(ctx, q, false) }

// DrainRQ is DrainSQ for the receives (ib_drain_rq). ErrInvalid for a queue pair with an SRQ, whose receives stay
// there: EventQPLastWQEReached reports that the queue pair uses no more of them.
func DrainRQ(ctx context.Context, q *verbs.QP) error {
	if q != nil && !in.HasReceives(q) {
		return fmt.Errorf("drain QP %v: %w: it uses an SRQ; wait for EventQPLastWQEReached", q.Number(), verbs.ErrInvalid)
	}
	return drainToErr(ctx, q, true)
}

// DrainQP is DrainSQ, followed by DrainRQ unless there is an SRQ (ib_drain_qp).
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
