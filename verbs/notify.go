package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// peek is queued, after the card has run if there were none.
func (q *CQ) peek() (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued := q.queued()
	if queued == 0 && q.ctx.progress != nil && q.ctx.progress.Progress() {
		queued = q.queued()
	}
	return queued, q.failure("peek CQ", queued)
}

// queued is how many completions are there. The caller holds mu.
func (q *CQ) queued() int { return len(q.kept) + int(q.queue.Available(q.queue.Entries())) }

// ReqNotify arms the queue: its completion channel gets one notification, of the next completion
// (CQNextComp) or only of the next solicited or failed one (CQSolicited); ibv_req_notify_cq,
// ib_req_notify_cq. The flags have exactly one of the two, else ErrInvalid. Completions that are there
// already cause none: poll once more after arming, before waiting. With CQReportMissedEvents, missed
// says whether that is needed.
//
// An armed queue may be armed again; the next completion includes a solicited one. A queue with neither channel nor
// CompHandler may be armed too, and tells nobody. Wait needs no channel, and no arming.
func (q *CQ) ReqNotify(flags CQNotifyFlags) (missed bool, err error) {
	if q == nil {
		return false, fmt.Errorf("arm CQ: %w", errNil)
	}
	which := flags &^ CQReportMissedEvents
	if which != CQSolicited && which != CQNextComp {
		return false, fmt.Errorf("arm CQ: %w: flags %#x, where exactly one of CQSolicited and CQNextComp is needed", ErrInvalid, uint8(flags))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue.Arm(which == CQSolicited)
	queued := q.queued()
	return flags != which && queued > 0, q.failure("arm CQ", queued)
}

// armForCount is ReqNcompNotif of package kernel.
func (q *CQ) armForCount(n int) error {
	q.resizing.Lock()
	defer q.resizing.Unlock()
	if n < 1 || n > q.Capacity() {
		return fmt.Errorf("arm CQ: %w: %d completions; the queue holds 1 to %d", ErrInvalid, n, q.Capacity())
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

// armCount arms the queue, and reports whether that many completions are there.
func (q *CQ) armCount(n int) (there bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counted = n
	q.countKept()
	q.queue.ArmCount()
	queued := q.queued()
	return queued >= n, q.failure("arm CQ", queued)
}

// countKept tells the card how many completions ReqNcompNotif wants in the queue beside those that were
// kept. The caller holds mu.
func (q *CQ) countKept() { q.queue.SetThreshold(uint32(max(q.counted-len(q.kept), 0))) }

// Modify moderates the queue's events (ibv_modify_cq). The event of an armed queue, and the wake-up of
// those who wait, then come when count completions are there, or period microseconds after the first
// of them, whichever is first. As in hardware there is no moderation if one of the two is 0: a count
// alone might never be reached. Solicited and failed completions are delayed like others, an overrun
// is not. Completions that are polled while the event is delayed do not cancel it.
func (q *CQ) Modify(count, period uint16) error {
	if q == nil {
		return fmt.Errorf("modify CQ: %w", errNil)
	}
	if err := provider.Exec(q.ctx.provider, provider.ModifyCQ, provider.ModifyCQRequest{CQ: q.handle, Count: count, Period: period}); err != nil {
		return fmt.Errorf("modify CQ: %w", err)
	}
	return nil
}
