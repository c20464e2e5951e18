// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// peek returns queued, after running the card if the queue is empty.
func (q *CQ) peek() (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued := q.queued()
	if queued == 0 && q.ctx.progress != nil && q.ctx.progress.Progress() {
		queued = q.queued()
	}
	return queued, q.failure("peek CQ", queued)
}

// queued returns the number of completions in the queue. The caller holds mu.
func (q *CQ) queued() int { return len(q.kept) + int(q.queue.Available(q.queue.Entries())) }

// ReqNotify arms the queue (ibv_req_notify_cq, ib_req_notify_cq): its completion channel or handler receives one
// notification, of the next completion (CQNextComp) or only of the next solicited or failed one (CQSolicited). The
// flags must contain exactly one of the two, else ErrInvalid. Completions that are already queued cause no
// notification: poll once more after arming, before waiting. With CQReportMissedEvents, missed reports whether that is
// needed.
//
// An armed queue may be armed again; CQNextComp includes solicited completions. A queue with neither Channel nor
// CompHandler may be armed too, without effect. Wait needs neither a channel nor arming.
func (q *CQ) ReqNotify(flags CQNotifyFlags) (missed bool, err error) {
	if q == nil {
		return false, fmt.Errorf("arm CQ: %w", errNil)
	}
	which := flags &^ CQReportMissedEvents
	if which != CQSolicited && which != CQNextComp {
		return false, fmt.Errorf("arm CQ: %w: flags %#x must contain exactly one of CQSolicited and CQNextComp", ErrInvalid, uint8(flags))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue.Arm(which == CQSolicited)
	queued := q.queued()
	return flags != which && queued > 0, q.failure("arm CQ", queued)
}

// armForCount implements ReqNcompNotif of package kernel.
func (q *CQ) armForCount(n int) error {
	q.resizing.Lock()
	defer q.resizing.Unlock()
	if n < 1 || n > q.Capacity() {
		return fmt.Errorf("arm CQ: %w: %d completions; valid are 1 to %d, the capacity of the queue", ErrInvalid, n, q.Capacity())
	}
	there, err := q.armCount(n)
	if err != nil || !there {
		return err
	}
	if err := provider.Exec(q.ctx.provider, provider.CheckCQ, provider.CheckCQRequest{CQ: q.handle, Armings: ring.ArmedCount}); err != nil {
		return fmt.Errorf("arm CQ: %w", err)
	}
	return nil
}

// armCount arms the queue, and reports whether n completions are already queued.
func (q *CQ) armCount(n int) (there bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counted = n
	q.countKept()
	q.queue.ArmCount()
	queued := q.queued()
	return queued >= n, q.failure("arm CQ", queued)
}

// countKept sets the number of completions that ReqNcompNotif waits for in the card's queue, in addition to the kept
// ones. The caller holds mu.
func (q *CQ) countKept() { q.queue.SetThreshold(uint32(max(q.counted-len(q.kept), 0))) }

// Modify moderates the queue's events (ibv_modify_cq). The event of an armed queue, and the wake-up of waiting
// goroutines, then occur when count completions are queued, or period microseconds after the first of them, whichever
// comes first. As in hardware, moderation is off if one of the two is 0, because a count alone might never be reached.
// Solicited and failed completions are delayed like others, an overrun is not. Polling completions while the event is
// delayed does not cancel it.
func (q *CQ) Modify(count, period uint16) error {
	if q == nil {
		return fmt.Errorf("modify CQ: %w", errNil)
	}
	if err := provider.Exec(q.ctx.provider, provider.ModifyCQ, provider.ModifyCQRequest{CQ: q.handle, Count: count, Period: period}); err != nil {
		return fmt.Errorf("modify CQ: %w", err)
	}
	return nil
}
