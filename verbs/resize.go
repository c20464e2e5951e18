package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// Resize changes the queue's capacity to at least that many completions (ibv_resize_cq), and keeps
// what is queued: ErrInvalid if that is more. Other goroutines may poll and wait meanwhile, and the
// card may complete: nothing is lost or out of order. ErrInvalid below the number that an
// armed ReqNcompNotif of package kernel waits for: its event would never come. ErrCQOverrun for a queue that was overrun.
func (q *CQ) Resize(entries int) error {
	if q == nil {
		return fmt.Errorf("resize CQ: %w", errNil)
	}
	q.resizing.Lock()
	defer q.resizing.Unlock()
	if err := q.checkRoom(entries); err != nil {
		return fmt.Errorf("resize CQ to %d entries: %w", entries, err)
	}
	grant, err := provider.Do(q.ctx.provider, provider.ResizeCQ, provider.ResizeCQRequest{CQ: q.handle, Entries: entries})
	if err != nil {
		return fmt.Errorf("resize CQ to %d entries: %w", entries, err)
	}
	queue, err := ring.NewCompletionConsumer(grant.Memory, grant.Geometry)
	if err != nil {
		return fmt.Errorf("resize CQ: %w", err)
	}
	q.capacity.Store(int64(grant.Geometry.Entries))
	if owed := q.moveTo(queue); owed != 0 {
		_ = provider.Exec(q.ctx.provider, provider.CheckCQ, provider.CheckCQRequest{CQ: q.handle, Armings: owed}) // fails only if the CQ is gone
	}
	return nil
}

// checkRoom refuses a size that has no room for what is queued, or for what the queue is armed for.
func (q *CQ) checkRoom(entries int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := q.queued(); {
	case entries < 1 || q.isClosed(): // the card says so
		return nil
	case n > entries:
		return fmt.Errorf("%w: it holds %s; poll first", ErrInvalid, count(n, "completion"))
	case q.counted > entries && q.queue.Armed()&ring.ArmedCount != 0:
		return fmt.Errorf("%w: it is armed for %s; ReqNcompNotif arms it for fewer", ErrInvalid, count(q.counted, "completion"))
	}
	return nil
}

// moveTo goes on with the queue that the card writes by now. It keeps what is left in the old one,
// which nobody reads again, and carries over the armings that came after the card had left it. The
// card may owe events of those, and of a count, which the kept ones are part of.
func (q *CQ) moveTo(queue *ring.CompletionConsumer) (owed ring.Arming) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.purge()
	owed = queue.TakeLate(q.queue) | queue.Armed()&ring.ArmedCount
	q.queue = queue
	q.countKept()
	return owed
}
