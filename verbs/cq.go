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

	armedIn atomic.Uint32 // the turn in which an empty poll has armed it, see manners

	mu      sync.Mutex
	queue   *ring.CompletionConsumer
	kept    []ring.CQE // older than those in the queue; see purge and Resize
	counted int        // what ReqNcompNotif has asked for last
}

// CQInitAttr is what a CQ is made with (ibv_cq_init_attr_ex). The zero value of each field except Entries
// will do.
type CQInitAttr struct {
	Entries    int          // room for at least that many completions
	Channel    *CompChannel // to which its notifications go; see ReqNotify
	CQContext  any          // what CQ.CQContext gives, for the program's own use
	CompVector int          // 0 to Context.NumCompVectors - 1: which goroutine calls CompHandler
	// CompHandler is called for each notification, instead of a record in a channel (comp_handler of ib_create_cq):
	// a CQ has one of the two, or neither. It arms the queue again (ReqNotify) and polls it until it is empty.
	CompHandler func(*CQ)
	// EventHandler gets EventCQErr, instead of GetAsyncEvent. Both handlers are called by goroutines of the
	// context, under no lock, and neither is called twice at once. They may call everything, Close too.
	EventHandler func(AsyncEvent)
	WCFlags      ib.CQWCFlags // what completions are to carry; what costs nothing they always carry
	Flags        CQFlags
}

// CreateCQ makes a completion queue with room for at least that many completions (ibv_create_cq).
// It must be polled before it is full: an overrun puts it and its queue pairs into error, which
// EventCQErr and EventQPFatal report. From then on it is of no use: no queue pair can begin with it.
func (c *Context) CreateCQ(entries int) (*CQ, error) {
	if c == nil {
		return nil, fmt.Errorf("create CQ: %w", errNil)
	}
	return c.CreateCQEx(&CQInitAttr{Entries: entries})
}

// CreateCQEx is CreateCQ with all attributes (ibv_create_cq_ex). ErrUnsupported for flags that the card
// cannot fulfil.
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

// Capacity is how many completions the queue can hold, at least what was asked for.
func (q *CQ) Capacity() int {
	if q == nil {
		return 0
	}
	return int(q.capacity.Load())
}

// CQContext is the value that the program made the CQ with (cq_context).
func (q *CQ) CQContext() any {
	if q == nil {
		return nil
	}
	return q.attr.CQContext
}

// EventID is the number that names the CQ in the records of its completion channel. No other CQ of the
// context has it, at any time.
func (q *CQ) EventID() uint64 {
	if q == nil {
		return 0
	}
	return q.eventID
}

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
	q.countKept()
	q.queue.Publish()
}

func (q *CQ) keep(cqe ring.CQE) {
	if q.ctx.slots.find(cqe.Token) != nil {
		q.kept = append(q.kept, cqe)
	}
}

// Close destroys the queue (ibv_destroy_cq); ErrBusy while a queue pair completes to it, or while
// notifications that CompChannel.Get gave are not acknowledged: libibverbs would block until they are.
// Notifications that nobody has got are dropped. Calls of Wait return ErrObjectClosed.
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

// destroy first has polls look at an empty queue: the memory may be another's once the card has freed it.
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
	queue, _ := ring.NewCompletionConsumer(ring.Alloc(g.Size()), g) // they fit each other
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
