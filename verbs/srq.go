// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"sync"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// SRQ is a shared receive queue (ibv_srq): its receives are used by any of its queue pairs. The memory of its receives
// belongs to the PD of the SRQ, whatever the PD of those queue pairs.
type SRQ struct {
	pd      *PD
	eventID uint64 // see eventSources
	handle  provider.Handle

	modifyMu sync.Mutex // one Modify or Close at a time; before mu

	mu      sync.Mutex
	closing bool // Close runs its command: the card may free the memory, so it must not be accessed
	closed  bool
	init    SRQInitAttr
	attr    SRQAttr // as granted; the card has the current Limit
	queue   *ring.RecvProducer
	older   []*ring.RecvProducer // replaced by a resize, with receives that the card has not dequeued

	xrc *xrcReceives // of an SRQ of type XRC, else nil
}

// SRQInitAttr are the attributes of a new SRQ (ibv_srq_init_attr, ibv_srq_init_attr_ex). A new SRQ has no limit: see
// Modify.
type SRQInitAttr struct {
	MaxWR  uint32
	MaxSGE uint32 // 0 means 1

	// Type is SRQTypeBasic, which is 0, or SRQTypeXRC. An SRQ of type XRC belongs to an XRC domain, has a number that
	// peers send to (SRQ.Number), and a CQ for the completions of its receives.
	Type SRQType
	XRCD *XRCD
	CQ   *CQ

	// EventHandler receives the queue's asynchronous events, instead of GetAsyncEvent (event_handler of
	// ib_srq_init_attr). A goroutine of the context calls it without locks; its calls do not overlap.
	EventHandler func(AsyncEvent)
	SRQContext   any // returned by SRQ.SRQContext, for the program's own use
}

// SRQAttr are the attributes of an SRQ (ibv_srq_attr).
//
// See [ib.SRQAttr] for its fields.
type SRQAttr = ib.SRQAttr

// CreateSRQ creates a shared receive queue (ibv_create_srq, ibv_create_srq_ex). It sets MaxWR and MaxSGE in attr to the
// granted values, which are at least the requested ones. ErrCQOverrun if the CQ of an SRQ of type XRC was overrun.
func (p *PD) CreateSRQ(attr *SRQInitAttr) (*SRQ, error) {
	if p == nil || attr == nil {
		return nil, fmt.Errorf("create SRQ: %w", errNil)
	}
	var q *SRQ
	err := p.ctx.eventSources.add(func(eventID uint64) (_ any, err error) {
		if attr.EventHandler != nil {
			p.ctx.beginReading()
		}
		if attr.Type == SRQTypeBasic {
			q, err = p.createSRQ(*attr, eventID)
		} else {
			q, err = p.createXRCSRQ(*attr, eventID)
		}
		return q, err
	})
	if err != nil {
		return nil, fmt.Errorf("create SRQ: %w", err)
	}
	attr.MaxWR, attr.MaxSGE = q.attr.MaxWR, q.attr.MaxSGE
	return q, nil
}

func (p *PD) createSRQ(attr SRQInitAttr, eventID uint64) (*SRQ, error) {
	asked := provider.SRQInitAttr{MaxWR: attr.MaxWR, MaxSGE: attr.MaxSGE}
	grant, err := provider.Do(p.ctx.provider, provider.CreateSRQ, provider.CreateSRQRequest{PD: p.handle, Attr: asked, EventID: eventID})
	if err != nil {
		return nil, err
	}
	return p.newSRQ(attr, &grant, eventID)
}

// newSRQ creates the program's end of a queue that the card has created.
func (p *PD) newSRQ(attr SRQInitAttr, grant *provider.CreateSRQGrant, eventID uint64) (*SRQ, error) {
	queue, err := ring.NewRecvProducer(grant.Memory, grant.Geometry)
	if err != nil {
		_ = provider.Exec(p.ctx.provider, provider.DestroySRQ, provider.DestroySRQRequest{SRQ: grant.SRQ})
		return nil, err
	}
	return &SRQ{pd: p, eventID: eventID, handle: grant.SRQ, init: attr, attr: grant.Attr, queue: queue}, nil
}

// SRQContext returns the value of SRQInitAttr.SRQContext (srq_context).
func (q *SRQ) SRQContext() any {
	if q == nil {
		return nil
	}
	return q.init.SRQContext
}

// PostRecv queues receives (ibv_post_srq_recv). They stay queued when a queue pair goes to ERR or RESET or is closed.
// Errors are those of QP.PostSend; the slot of a receive is free when the card has dequeued it.
func (q *SRQ) PostRecv(wrs []RecvWR) error {
	if q == nil {
		return &BadWRError{0, errNil}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.pd.ctx.gone(); err != nil {
		return &BadWRError{0, err}
	}
	free := q.room()
	for i := range wrs {
		if err := q.check(&wrs[i], free); err != nil {
			q.announce(i)
			return &BadWRError{i, err}
		}
		q.queue.Put(wrs[i].ID, wrs[i].SGList)
		free--
	}
	q.announce(len(wrs))
	return nil
}

// announce publishes n requests. The card reads them when a packet arrives.
func (q *SRQ) announce(n int) {
	if n > 0 {
		q.queue.Publish()
	}
}

// room returns the number of receives that can be posted. Receives in older queues count as queued.
func (q *SRQ) room() uint32 {
	if q.closing {
		return 0
	}
	waiting := q.queue.Waiting()
	if len(q.older) > 0 {
		waiting += q.waitingInOlder()
	}
	return q.attr.MaxWR - min(waiting, q.attr.MaxWR)
}

// waitingInOlder returns the number of receives in older queues. It also removes queues that are empty, since they stay
// empty.
func (q *SRQ) waitingInOlder() (waiting uint32) {
	left := q.older[:0]
	for _, old := range q.older {
		if n := old.Waiting(); n > 0 {
			waiting += n
			left = append(left, old)
		}
	}
	clear(q.older[len(left):])
	q.older = left
	return waiting
}

var (
	errSRQFull   = fmt.Errorf("%w: all receives of the SRQ are queued; request a larger max_wr", ErrQueueFull)
	errSRQClosed = fmt.Errorf("%w: the SRQ", ErrObjectClosed)
)

func (q *SRQ) check(wr *RecvWR, free uint32) error {
	switch {
	case q.closed:
		return errSRQClosed
	case uint32(len(wr.SGList)) > q.attr.MaxSGE:
		return fmt.Errorf("%w: %d SGEs; max_sge of the SRQ is %d", ErrInvalid, len(wr.SGList), q.attr.MaxSGE)
	case free == 0:
		return errSRQFull
	}
	return nil
}

// Modify changes the attributes in mask (ibv_modify_srq), all of them or none, and sets these fields of attr to their
// new values.
//
// SRQMaxWR resizes the queue and keeps queued receives in order; ErrInvalid if their number, or an armed limit, exceeds
// MaxWR. ErrBusy after 31 resizes if receives from before each of them are still queued.
//
// SRQLimit arms the queue: EventSRQLimitReached occurs once, as soon as fewer receives than Limit are queued, which may
// be immediately. Limit is then 0 until it is set again.
func (q *SRQ) Modify(attr *SRQAttr, mask SRQAttrMask) error {
	if q == nil || attr == nil {
		return fmt.Errorf("modify SRQ: %w", errNil)
	}
	q.modifyMu.Lock()
	defer q.modifyMu.Unlock()
	q.forgetEmpty()
	grant, err := provider.Do(q.pd.ctx.provider, provider.ModifySRQ, provider.ModifySRQRequest{SRQ: q.handle, Attr: *attr, Mask: mask})
	if err == nil && grant.Memory != nil {
		err = q.replace(&grant)
	}
	if err != nil {
		return fmt.Errorf("modify SRQ: %w", err)
	}
	if mask&SRQMaxWR != 0 {
		attr.MaxWR = grant.Attr.MaxWR
	}
	if mask&SRQLimit != 0 {
		attr.Limit = grant.Attr.Limit
	}
	return nil
}

// forgetEmpty makes the next resize free the memory of queues that were empty at the previous one.
func (q *SRQ) forgetEmpty() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waitingInOlder()
}

// replace makes posts use the queue of a resize. The card dequeues receives of the older queues first.
func (q *SRQ) replace(grant *provider.ModifySRQGrant) error {
	queue, err := ring.NewRecvProducer(grant.Memory, grant.Geometry)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.older = append(q.older, q.queue)
	q.queue, q.attr.MaxWR = queue, grant.Attr.MaxWR
	q.waitingInOlder()
	return nil
}

// Query returns the attributes (ibv_query_srq).
func (q *SRQ) Query() (SRQAttr, error) {
	if q == nil {
		return SRQAttr{}, fmt.Errorf("query SRQ: %w", errNil)
	}
	grant, err := provider.Do(q.pd.ctx.provider, provider.QuerySRQ, provider.QuerySRQRequest{SRQ: q.handle})
	if err != nil {
		return SRQAttr{}, fmt.Errorf("query SRQ: %w", err)
	}
	return grant.Attr, nil
}

// Close destroys the queue with the receives in it (ibv_destroy_srq); ErrBusy while a queue pair uses it. An SRQ of
// type XRC is not used by queue pairs: later messages to it are refused, and its completions that have not been polled
// are dropped.
func (q *SRQ) Close() error {
	if q == nil {
		return fmt.Errorf("destroy SRQ: %w", errNil)
	}
	q.modifyMu.Lock()
	defer q.modifyMu.Unlock()
	q.set(&q.closing, true)
	if err := provider.Exec(q.pd.ctx.provider, provider.DestroySRQ, provider.DestroySRQRequest{SRQ: q.handle}); err != nil {
		q.set(&q.closing, false)
		return fmt.Errorf("destroy SRQ: %w", err)
	}
	q.set(&q.closed, true)
	q.pd.ctx.forget(q.eventID)
	if q.xrc != nil {
		q.xrc.end(q.pd.ctx)
	}
	return nil
}

func (q *SRQ) set(flag *bool, to bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*flag = to
}
