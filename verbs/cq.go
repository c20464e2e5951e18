package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
)

// CQ is a completion queue (ibv_cq).
type CQ struct {
	ctx      *Context
	eventID  uint64 // see eventSources
	handle   Handle
	capacity int
	events   chan struct{}
	closed   chan struct{} // closed by Close
	waiters  atomic.Int32
	empty    atomic.Uint32 // polls that found nothing

	mu    sync.Mutex
	queue *ring.CompletionConsumer
	kept  []ring.CQE // older than those in the queue; see purge
}

// CreateCQ makes a completion queue with room for at least that many completions (ibv_create_cq).
// It must be polled before it is full: an overrun puts it and its queue pairs into error, which
// EventCQErr and EventQPFatal report.
func (c *Context) CreateCQ(entries int) (*CQ, error) {
	var cq *CQ
	err := c.eventSources.add(func(eventID uint64) (_ any, err error) {
		cq, err = c.createCQ(entries, eventID)
		return cq, err
	})
	if err != nil {
		return nil, fmt.Errorf("create CQ of %d entries: %w", entries, err)
	}
	return cq, nil
}

func (c *Context) createCQ(entries int, eventID uint64) (*CQ, error) {
	grant, err := c.provider.CreateCQ(CreateCQRequest{entries, eventID})
	if err != nil {
		return nil, err
	}
	queue, err := ring.NewCompletionConsumer(grant.Memory, grant.Geometry)
	if err != nil {
		_ = c.provider.DestroyCQ(DestroyCQRequest{grant.CQ})
		return nil, err
	}
	return &CQ{ctx: c, eventID: eventID, handle: grant.CQ, capacity: int(grant.Geometry.Entries), events: grant.Events, closed: make(chan struct{}), queue: queue}, nil
}

// Capacity is how many completions the queue can hold, at least what was asked for.
func (q *CQ) Capacity() int { return q.capacity }

// purge drops completions of queue pairs that were reset or destroyed, which would take up room
// until polled, and moves the other completions to kept. The caller holds mu.
func (q *CQ) purge() {
	kept := q.kept
	q.kept = nil
	for _, cqe := range kept {
		q.keep(cqe)
	}
	var cqe ring.CQE
	for q.queue.Available(1) > 0 {
		q.queue.Get(&cqe)
		q.keep(cqe)
	}
	q.queue.Publish()
}

func (q *CQ) keep(cqe ring.CQE) {
	if q.ctx.slots.find(cqe.Token) != nil {
		q.kept = append(q.kept, cqe)
	}
}

// Close destroys the queue (ibv_destroy_cq); ErrBusy while a queue pair completes to it. Calls of
// Wait return ErrObjectClosed.
func (q *CQ) Close() error {
	if q == nil {
		return fmt.Errorf("destroy CQ: %w", errNil)
	}
	if err := q.ctx.provider.DestroyCQ(DestroyCQRequest{q.handle}); err != nil {
		return fmt.Errorf("destroy CQ: %w", err)
	}
	close(q.closed) // only once: a second DestroyCQ of the handle fails
	if q.ctx.progress != nil {
		q.ctx.progress.WakeLeader()
	}
	q.ctx.eventSources.remove(q.eventID)
	return nil
}

func (q *CQ) isClosed() bool {
	select {
	case <-q.closed:
		return true
	default:
		return false
	}
}
