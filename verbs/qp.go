// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// QP is a queue pair (ibv_qp).
type QP struct {
	ctx             *Context
	pd              *PD
	eventID         uint64          // identifies it in events; see eventSources
	handle          provider.Handle // identifies it in commands
	number          QPN             // identifies it to peers
	init            QPInitAttr      // with the granted sizes
	connected       bool            // RC, UC or XRC
	target          bool            // an XRC target, which has no queues and no CQs
	completionToken atomic.Uint32   // identifies it in completions until the next reset; see qpSlots
	state           atomic.Uint32   // as last set by this program; the card may have changed it to SQE or ERR
	closed          atomic.Bool

	modifyMu sync.Mutex // one Modify or Close at a time; before sendMu, recvMu

	sendMu       sync.Mutex
	send         *ring.SendProducer
	sendWQE      ring.Send          // the datagram request being posted; assigned field by field, see WC.fill
	connectedWQE ring.SendConnected // likewise, of a connected queue pair
	sendEntries  uint32
	sendPolled   atomic.Uint32

	recvMu      sync.Mutex
	recv        *ring.RecvProducer // nil if it uses an SRQ
	recvEntries uint32
	recvPolled  atomic.Uint32
}

// CreateQP creates a queue pair in RESET (ibv_create_qp), and sets attr.Cap to the granted capacities, which are at
// least the requested ones. ErrCQOverrun if one of its CQs was overrun: create another CQ, because an overrun CQ gets
// no more completions.
func (p *PD) CreateQP(attr *QPInitAttr) (*QP, error) {
	if p == nil || attr == nil {
		return nil, fmt.Errorf("create QP: %w", errNil)
	}
	var qp *QP
	err := p.ctx.eventSources.add(func(eventID uint64) (_ any, err error) {
		qp, err = p.createQP(*attr, eventID)
		return qp, err
	})
	if err != nil {
		return nil, fmt.Errorf("create QP: %w", err)
	}
	attr.Cap = qp.init.Cap
	return qp, nil
}

func (p *PD) createQP(attr QPInitAttr, eventID uint64) (*QP, error) {
	if attr.Type == QPTypeXRCSend { // it has no receives
		attr.RecvCQ, attr.SRQ = attr.SendCQ, nil
	}
	if attr.SendCQ == nil || attr.RecvCQ == nil {
		return nil, fmt.Errorf("%w: a queue pair needs a SendCQ and a RecvCQ; they may be the same", ErrInvalid)
	}
	if attr.SendCQ.ctx != p.ctx || attr.RecvCQ.ctx != p.ctx {
		return nil, fmt.Errorf("%w: the CQ belongs to another context", ErrInvalid)
	}
	if attr.SRQ != nil && attr.SRQ.pd.ctx != p.ctx {
		return nil, fmt.Errorf("%w: the SRQ belongs to another context", ErrInvalid)
	}
	if attr.EventHandler != nil {
		p.ctx.beginReading()
	}
	token, err := p.ctx.slots.take()
	if err != nil {
		return nil, err
	}
	request := provider.CreateQPRequest{
		PD: p.handle, Type: attr.Type, Cap: attr.Cap, SigAll: attr.SQSigAll, BlockSelfMcast: attr.BlockSelfMcastLB,
		Port: attr.Port, SendCQ: attr.SendCQ.handle, RecvCQ: attr.RecvCQ.handle,
		DoorbellIndex: token % ring.MaxQueuePairs, CompletionToken: token, EventID: eventID,
	}
	if attr.SRQ != nil {
		request.SRQ = attr.SRQ.handle
	}
	grant, err := provider.Do(p.ctx.provider, provider.CreateQP, request)
	if err != nil {
		p.ctx.slots.release(token)
		return nil, err
	}
	attr.Cap = grant.Cap
	qp := &QP{ctx: p.ctx, pd: p, eventID: eventID, handle: grant.QP, number: grant.Number, init: attr}
	qp.connected = attr.Type == QPTypeRC || attr.Type == QPTypeUC || attr.Type == QPTypeXRCSend
	if err := qp.mapQueues(grant); err != nil {
		_ = provider.Exec(p.ctx.provider, provider.DestroyQP, provider.DestroyQPRequest{QP: grant.QP})
		p.ctx.slots.release(token)
		return nil, err
	}
	qp.completionToken.Store(token)
	p.ctx.slots.at(token).qp.Store(qp)
	return qp, nil
}

func (q *QP) mapQueues(grant provider.CreateQPGrant) (err error) {
	producer := ring.NewSendProducer
	if q.init.Type == QPTypeXRCSend {
		producer = ring.NewXRCSendProducer
	}
	if q.send, err = producer(grant.SendMemory, grant.SendGeometry); err != nil {
		return err
	}
	q.sendEntries, q.recvEntries = grant.SendGeometry.Entries, grant.RecvGeometry.Entries
	if q.init.SRQ != nil || q.init.Type == QPTypeXRCSend {
		return nil
	}
	q.recv, err = ring.NewRecvProducer(grant.RecvMemory, grant.RecvGeometry)
	return err
}

// Number returns the queue pair's number, which peers send to.
func (q *QP) Number() QPN {
	if q == nil {
		return 0
	}
	return q.number
}

// QPContext returns the value of QPInitAttr.QPContext (qp_context).
func (q *QP) QPContext() any {
	if q == nil {
		return nil
	}
	return q.init.QPContext
}

// State returns the state that this program set last. The card may have changed the queue pair to SQE or ERR since;
// completions show that, and Query returns the card's state.
func (q *QP) State() QPState {
	if q == nil {
		return 0
	}
	return QPState(q.state.Load())
}

// Modify changes the attributes in mask, which may include the state (ibv_modify_qp), and sets these fields of attr to
// their new values. ModifyQPIsOK of package kernel reports which attributes a change of state requires and permits. If
// Modify fails, the queue pair and attr are unchanged.
//
// The change to RESET empties the queues and removes the queue pair's completions from its CQs. The change to ERR
// completes all outstanding requests with WCWRFlushErr, in order. The change from RESET to INIT returns ErrCQOverrun if
// a CQ of the queue pair was overrun: create another CQ and another queue pair.
func (q *QP) Modify(attr *QPAttr, mask QPAttrMask) error {
	if q == nil || attr == nil {
		return fmt.Errorf("modify QP: %w", errNil)
	}
	q.modifyMu.Lock()
	defer q.modifyMu.Unlock()
	if mask&QPAttrState != 0 && attr.State == QPStateReset && !q.target {
		return q.reset(attr, mask)
	}
	grant, err := provider.Do(q.ctx.provider, provider.ModifyQP, provider.ModifyQPRequest{QP: q.handle, Attr: *attr, Mask: mask})
	if err != nil {
		return fmt.Errorf("modify QP %v: %w", q.number, err)
	}
	if mask&QPAttrState != 0 {
		q.state.Store(uint32(attr.State))
	}
	attr.Set(&grant.Attr, mask)
	return nil
}

// reset changes the state to RESET. It first makes posts fail, then runs the command without locks, and finally renews
// the token, so that polls skip older completions. Completions polled before that count as polled before the reset.
func (q *QP) reset(attr *QPAttr, mask QPAttrMask) error {
	was := q.enterReset()
	token := q.ctx.slots.next(q.completionToken.Load())
	grant, err := provider.Do(q.ctx.provider, provider.ModifyQP, provider.ModifyQPRequest{QP: q.handle, Attr: *attr, Mask: mask, CompletionToken: token})
	if err != nil {
		q.state.Store(was)
		return fmt.Errorf("modify QP %v: %w", q.number, err)
	}
	attr.Set(&grant.Attr, mask)
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	defer q.lockCQs()()
	q.ctx.mu.Lock()
	defer q.ctx.mu.Unlock()
	q.ctx.slots.renew(token)
	q.completionToken.Store(token)
	q.sendPolled.Store(q.send.Signaled())
	if q.recv != nil {
		q.recvPolled.Store(q.recv.Posted())
	}
	q.purgeCQs()
	return nil
}

// enterReset makes posts fail. When it returns, no post is running.
func (q *QP) enterReset() (was uint32) {
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	q.recvMu.Lock()
	defer q.recvMu.Unlock()
	return q.state.Swap(uint32(QPStateReset))
}

// purgeCQs removes the queue pair's old completions from both CQs. The caller holds their locks.
func (q *QP) purgeCQs() {
	q.init.SendCQ.purge()
	if q.init.RecvCQ != q.init.SendCQ {
		q.init.RecvCQ.purge()
	}
}

// lockCQs locks both CQs in the order of their handles, so that a poll counts its completions either before the
// counters are reset or after.
func (q *QP) lockCQs() (unlock func()) {
	first, second := q.init.SendCQ, q.init.RecvCQ
	if first == second {
		first.mu.Lock()
		return first.mu.Unlock
	}
	if first.handle > second.handle {
		first, second = second, first
	}
	first.mu.Lock()
	second.mu.Lock()
	return func() {
		second.mu.Unlock()
		first.mu.Unlock()
	}
}

// Query returns all attributes in the card, and those that the queue pair was created with (ibv_query_qp, whose mask is
// only a hint).
func (q *QP) Query() (QPAttr, QPInitAttr, error) {
	if q == nil {
		return QPAttr{}, QPInitAttr{}, fmt.Errorf("query QP: %w", errNil)
	}
	grant, err := provider.Do(q.ctx.provider, provider.QueryQP, provider.QueryQPRequest{QP: q.handle})
	if err != nil {
		return QPAttr{}, QPInitAttr{}, fmt.Errorf("query QP %v: %w", q.number, err)
	}
	grant.Attr.Cap = q.init.Cap
	return grant.Attr, q.init, nil
}

// Close destroys the queue pair (ibv_destroy_qp). It first waits up to a second until posted sends have been sent,
// except in SQD or when the card is closed or has failed. It does not wait for acknowledgements of RC sends, so their
// delivery is unknown; Drain waits for those. It then drops all outstanding sends and receives, except those of an SRQ,
// and all completions that have not been polled.
//
// ErrBusy while the queue pair is attached to a group (DetachMcast). Of an XRC target, Close closes only this handle;
// see XRCD.OpenQP.
func (q *QP) Close() error {
	if q == nil {
		return fmt.Errorf("destroy QP: %w", errNil)
	}
	if q.target {
		return q.closeTarget()
	}
	q.drainToClose()
	q.modifyMu.Lock()
	defer q.modifyMu.Unlock()
	was := q.enterReset() // first, because the card may reuse the queues' memory as soon as it has freed it
	if err := provider.Exec(q.ctx.provider, provider.DestroyQP, provider.DestroyQPRequest{QP: q.handle}); err != nil {
		q.state.Store(was)
		return fmt.Errorf("destroy QP %v: %w", q.number, err)
	}
	q.closed.Store(true)
	q.ctx.slots.release(q.completionToken.Load())
	q.ctx.forget(q.eventID)
	defer q.lockCQs()()
	q.purgeCQs()
	return nil
}
