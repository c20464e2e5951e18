// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// Resize changes the queue's capacity to at least that many completions (ibv_resize_cq), and keeps queued completions
// in order; ErrInvalid if there are more of them. Other goroutines may poll and wait meanwhile, and the card may add
// completions. ErrInvalid if entries is below the count of an armed ReqNcompNotif of package kernel, whose event would
// never occur. ErrCQOverrun for a queue that was overrun.
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
		_ = provider.Exec(q.ctx.provider, provider.CheckCQ, provider.CheckCQRequest{CQ: q.handle, Armings: owed}) // fails only if the CQ is closed
	}
	return nil
}

// checkRoom checks that a size has room for the queued completions, and for an armed count.
func (q *CQ) checkRoom(entries int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch n := q.queued(); {
	case entries < 1 || q.isClosed(): // the card returns the error
		return nil
	case n > entries:
		return fmt.Errorf("%w: the queue contains %s; poll first", ErrInvalid, count(n, "completion"))
	case q.counted > entries && q.queue.Armed()&ring.ArmedCount != 0:
		return fmt.Errorf("%w: the queue is armed for %s; arm it for fewer by ReqNcompNotif", ErrInvalid, count(q.counted, "completion"))
	}
	return nil
}

// moveTo switches to the queue that the card writes now. It keeps the completions left in the old queue, which is not
// read again, and carries over armings that came after the card had switched. The card may owe events for those, and
// for a count that includes the kept completions.
func (q *CQ) moveTo(queue *ring.CompletionConsumer) (owed ring.Arming) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.purge()
	owed = queue.TakeLate(q.queue) | queue.Armed()&ring.ArmedCount
	q.queue = queue
	q.countKept()
	return owed
}
