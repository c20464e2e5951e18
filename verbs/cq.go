// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// CQ is a completion queue (ibv_cq).
type CQ struct {
	ctx      *Context
	eventID  uint64 // see eventSources
	handle   provider.Handle
	attr     CQInitAttr
	capacity atomic.Int64
	events   chan struct{}
	closed   chan struct{} // closed by Close
	waiters  atomic.Int32

	resizing sync.Mutex // one Resize or ReqNcompNotif at a time; before mu
	acks     acks

	armedIn atomic.Uint32 // the turn in which an empty poll has armed it; see manners

	mu      sync.Mutex
	queue   *ring.CompletionConsumer
	kept    []ring.CQE // older than those in the queue; see purge and Resize
	counted int        // the count of the last ReqNcompNotif
}

// CQInitAttr are the attributes of a new CQ (ibv_cq_init_attr_ex). All fields except Entries may be zero.
type CQInitAttr struct {
	Entries    int          // minimum capacity in completions
	Channel    *CompChannel // receives the notifications; see ReqNotify
	CQContext  any          // returned by CQ.CQContext, for the program's own use
	CompVector int          // 0 to Context.NumCompVectors - 1: selects the goroutine that calls CompHandler
	// CompHandler is called for each notification, instead of a record in a channel (comp_handler of ib_create_cq). A
	// CQ has a channel, a handler or neither. The handler arms the queue again (ReqNotify) and polls it until it is
	// empty.
	CompHandler func(*CQ)
	// EventHandler receives EventCQErr, instead of GetAsyncEvent. Both handlers are called by goroutines of the
	// context, without locks; calls of one handler do not overlap. A handler may call any function, including Close.
	EventHandler func(AsyncEvent)
	WCFlags      ib.CQWCFlags // optional fields that completions shall have; fields that cost nothing are always set
	Flags        CQFlags
}

// CreateCQ creates a completion queue for at least that many completions (ibv_create_cq). It must be polled before it
// is full: an overrun puts the CQ and its queue pairs into error, which EventCQErr and EventQPFatal report. After an
// overrun the CQ is unusable: no queue pair can be created with it.
func (c *Context) CreateCQ(entries int) (*CQ, error) {
	if c == nil {
		return nil, fmt.Errorf("create CQ: %w", errNil)
	}
	return c.CreateCQEx(&CQInitAttr{Entries: entries})
}

// CreateCQEx is CreateCQ with all attributes (ibv_create_cq_ex). ErrUnsupported for flags that the card does not
// support.
func (c *Context) CreateCQEx(attr *CQInitAttr) (*CQ, error) {
	if c == nil || attr == nil {
		return nil, fmt.Errorf("create CQ: %w", errNil)
	}
	var cq *CQ
	err := c.eventSources.add(func(eventID uint64) (_ any, err error) {
		cq, err = c.createCQ(*attr, eventID)
		return cq, err
	})
	if err != nil {
		return nil, fmt.Errorf("create CQ of %d entries: %w", attr.Entries, err)
	}
	return cq, nil
}

func (c *Context) createCQ(attr CQInitAttr, eventID uint64) (*CQ, error) {
	request := provider.CreateCQRequest{Entries: attr.Entries, EventID: eventID, CompVector: attr.CompVector, WCFlags: attr.WCFlags, Flags: attr.Flags}
	if attr.EventHandler != nil {
		c.beginReading()
	}
	if attr.CompHandler != nil {
		if attr.Channel != nil {
			return nil, fmt.Errorf("%w: a CQ has a completion channel or a completion handler, not both", ErrInvalid)
		}
		channel, err := c.vectors.channel(c, attr.CompVector)
		if err != nil {
			return nil, err
		}
		request.Channel = channel.handle
	}
	if attr.Channel != nil {
		if attr.Channel.ctx != c {
			return nil, fmt.Errorf("%w: the completion channel belongs to another context", ErrInvalid)
		}
		request.Channel = attr.Channel.handle
	}
	grant, err := provider.Do(c.provider, provider.CreateCQ, request)
	if err != nil {
		return nil, err
	}
	queue, err := ring.NewCompletionConsumer(grant.Memory, grant.Geometry)
	if err != nil {
		_ = provider.Exec(c.provider, provider.DestroyCQ, provider.DestroyCQRequest{CQ: grant.CQ})
		return nil, err
	}
	q := &CQ{ctx: c, eventID: eventID, handle: grant.CQ, attr: attr, events: grant.Events, closed: make(chan struct{}), queue: queue}
	q.capacity.Store(int64(grant.Geometry.Entries))
	return q, nil
}

// Capacity returns the number of completions that the queue can hold, at least the requested number.
func (q *CQ) Capacity() int {
	if q == nil {
		return 0
	}
	return int(q.capacity.Load())
}

// CQContext returns the value of CQInitAttr.CQContext (cq_context).
func (q *CQ) CQContext() any {
	if q == nil {
		return nil
	}
	return q.attr.CQContext
}

// EventID returns the number that identifies the CQ in the records of its completion channel. It is never used for
// another CQ of the context.
func (q *CQ) EventID() uint64 {
	if q == nil {
		return 0
	}
	return q.eventID
}

// purge drops completions of queue pairs that were reset or destroyed, which would occupy room until polled, and moves
// the other completions to kept. The caller holds mu.
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
	q.countKept()
	q.queue.Publish()
}

func (q *CQ) keep(cqe ring.CQE) {
	if q.ctx.slots.find(cqe.Token) != nil {
		q.kept = append(q.kept, cqe)
	}
}

// Close destroys the queue (ibv_destroy_cq). ErrBusy while a queue pair uses it, or while notifications returned by
// CompChannel.Get are not acknowledged (libibverbs would block until they are). Unread notifications are dropped.
// Waiting calls of Wait return ErrObjectClosed.
func (q *CQ) Close() error {
	if q == nil {
		return fmt.Errorf("destroy CQ: %w", errNil)
	}
	if err := q.acks.close(q.destroy); err != nil {
		return fmt.Errorf("destroy CQ: %w", err)
	}
	if q.ctx.leader != nil {
		q.ctx.leader.WakeLeader()
	}
	q.ctx.forget(q.eventID)
	return nil
}

// destroy first makes polls use an empty queue, because the card may reuse the memory as soon as it has freed it.
func (q *CQ) destroy() error {
	q.resizing.Lock()
	defer q.resizing.Unlock()
	was := q.swap(emptyQueue())
	err := provider.Exec(q.ctx.provider, provider.DestroyCQ, provider.DestroyCQRequest{CQ: q.handle})
	if err != nil {
		q.swap(was)
		q.wakeOne()
		return err
	}
	close(q.closed) // only once: a second DestroyCQ of the handle fails
	return nil
}

func (q *CQ) swap(queue *ring.CompletionConsumer) (was *ring.CompletionConsumer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	was, q.queue = q.queue, queue
	return was
}

func emptyQueue() *ring.CompletionConsumer {
	g := ring.CompletionGeometry(1)
	queue, _ := ring.NewCompletionConsumer(ring.Alloc(g.Size()), g) // cannot fail: the sizes match
	return queue
}

func (q *CQ) isClosed() bool {
	select {
	case <-q.closed:
		return true
	default:
		return false
	}
}
