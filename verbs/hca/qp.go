package hca

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// qp is a queue pair. Its state is the engine's; state is a copy that the
// engine keeps up to date.
type qp struct {
	hot            *datapath.QP
	pd             *pd
	sendCQ, recvCQ *cq
	groups         int    // that it is attached to
	user           uint64 // what the program calls it in events
	state          atomic.Uint32
	failed         atomic.Bool  // set by the engine; see events
	attr           verbs.QPAttr // but State; under d.mu
}

// Limits of a queue pair and of the device. They are what QueryDevice tells.
const (
	maxQP     = 16384
	maxQPWR   = 16384
	maxCQ     = 16384
	maxCQE    = 1 << 18
	maxMR     = 1 << 16
	maxPD     = 1 << 14
	maxAH     = 1 << 17
	maxMRSize = 1 << 30 // bytes
	maxInline = 512     // bytes
)

// checkCap holds what was asked for against the limits, and fills in defaults.
func checkCap(c *verbs.QPCap) error {
	c.MaxSendSGE, c.MaxRecvSGE = max(c.MaxSendSGE, 1), max(c.MaxRecvSGE, 1)
	for _, limit := range []struct {
		name       string
		asked, max uint32
	}{
		{"max_send_wr", c.MaxSendWR, maxQPWR}, {"max_recv_wr", c.MaxRecvWR, maxQPWR},
		{"max_send_sge", c.MaxSendSGE, ring.MaxSGE}, {"max_recv_sge", c.MaxRecvSGE, ring.MaxSGE},
		{"max_inline_data", c.MaxInlineData, maxInline},
	} {
		if limit.asked > limit.max {
			return fmt.Errorf("%w: %s %d, at most %d", verbs.ErrInvalid, limit.name, limit.asked, limit.max)
		}
	}
	return nil
}

// CreateQP implements verbs.Provider. The queue pair is in RESET.
func (d *Device) CreateQP(pdHandle verbs.Handle, c verbs.QPCommand) (verbs.QPGrant, error) {
	if c.Type != verbs.QPTypeUD {
		return verbs.QPGrant{}, fmt.Errorf("%w: queue pairs of type %d; UD (%d) is what there is", verbs.ErrUnsupported, c.Type, verbs.QPTypeUD)
	}
	if err := checkCap(&c.Cap); err != nil {
		return verbs.QPGrant{}, err
	}
	if err := d.enter(); err != nil {
		return verbs.QPGrant{}, err
	}
	defer d.mu.Unlock()
	q, err := d.newQP(pdHandle, c)
	if err != nil {
		return verbs.QPGrant{}, err
	}
	grant, err := q.makeQueues(c)
	if err != nil {
		return verbs.QPGrant{}, err
	}
	if err := d.publishQP(q, &grant); err != nil {
		return verbs.QPGrant{}, err
	}
	return grant, nil
}

// newQP checks what a queue pair refers to. Nothing has changed when it returns.
func (d *Device) newQP(pdHandle verbs.Handle, c verbs.QPCommand) (*qp, error) {
	p, err := d.pds.get(pdHandle)
	if err != nil {
		return nil, err
	}
	send, err := d.cqs.get(c.SendCQ)
	if err != nil {
		return nil, err
	}
	recv, err := d.cqs.get(c.RecvCQ)
	if err != nil {
		return nil, err
	}
	if c.Index >= ring.MaxQueuePairs || d.byDoorbell[c.Index] != nil {
		return nil, fmt.Errorf("%w: doorbell %d is taken; a card serves one Context", verbs.ErrInvalid, c.Index)
	}
	q := &qp{pd: p, sendCQ: send, recvCQ: recv, user: c.User}
	q.hot = &datapath.QP{
		PD: p.number, Index: c.Index, Token: c.Token, PKey: wire.PKeyDefault, SigAll: c.SigAll, NoSelfLoopback: c.BlockSelfMcast,
		SendCQ: send.hot, RecvCQ: recv.hot,
		NoteState: func(s verbs.QPState, fatal bool) {
			q.state.Store(uint32(s))
			if fatal {
				d.events.notice(&q.failed)
			}
		},
	}
	return q, nil
}

// makeQueues allocates the queues, and says what they grant.
func (q *qp) makeQueues(c verbs.QPCommand) (grant verbs.QPGrant, err error) {
	grant.SendGeometry = ring.SendGeometry(c.Cap.MaxSendWR, c.Cap.MaxSendSGE, c.Cap.MaxInlineData)
	grant.RecvGeometry = ring.RecvGeometry(c.Cap.MaxRecvWR, c.Cap.MaxRecvSGE)
	grant.SendMemory = ring.Alloc(grant.SendGeometry.Size())
	grant.RecvMemory = ring.Alloc(grant.RecvGeometry.Size())
	if q.hot.Send, err = ring.NewSendConsumer(grant.SendMemory, grant.SendGeometry); err != nil {
		return grant, err
	}
	if q.hot.Recv, err = ring.NewRecvConsumer(grant.RecvMemory, grant.RecvGeometry); err != nil {
		return grant, err
	}
	sendSGE, inline := grant.SendGeometry.SendRoom()
	q.hot.MaxInline, q.hot.MaxSendSGE = inline, sendSGE
	grant.Cap = verbs.QPCap{
		MaxSendWR: grant.SendGeometry.Entries, MaxRecvWR: grant.RecvGeometry.Entries,
		MaxSendSGE: sendSGE, MaxRecvSGE: grant.RecvGeometry.RecvRoom(), MaxInlineData: inline,
	}
	return grant, nil
}

// publishQP gives the queue pair its number and makes it known: to XDP first,
// since a packet that XDP lets through and the engine does not know is only a drop.
func (d *Device) publishQP(q *qp, grant *verbs.QPGrant) (err error) {
	if grant.Handle, err = d.qps.add(q); err != nil {
		return err
	}
	q.hot.Number = d.numbers.take(func(n wire.QPN) bool { return d.byPlace[n] == nil })
	if err := d.steering.AddQP(uint32(q.hot.Number)); err != nil {
		d.qps.remove(grant.Handle)
		return err
	}
	grant.Number = q.hot.Number
	d.byPlace[q.hot.Number%numberPlaces] = q
	d.byDoorbell[q.hot.Index] = q
	q.pd.users++
	q.sendCQ.users++
	q.recvCQ.users++
	d.engine.Do(func() { d.engine.AddQP(q.hot) })
	return nil
}

// qpNumbers hands out queue pair numbers. Low bits pick the place in the
// engine's table, so two live ones never share them; a number is used
// again as late as can be, so that packets for a dead queue pair find none. A device starts at
// random, so that they do not find one of the next process either.
type qpNumbers struct{ last wire.QPN }

func newQPNumbers() qpNumbers { return qpNumbers{wire.QPN(rand.Uint32()) & wire.QPNMax} }

const numberPlaces = 1 << 16

func (s *qpNumbers) take(free func(wire.QPN) bool) wire.QPN {
	for {
		s.last = (s.last + 1) & wire.QPNMax
		place := s.last % numberPlaces
		if place > wire.QPNGSI && place != numberPlaces-1 && free(place) {
			return s.last
		}
	}
}

// DestroyQP implements verbs.Provider.
func (d *Device) DestroyQP(handle verbs.Handle) error {
	if err := d.enterToFree(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	q, err := d.qps.get(handle)
	if err != nil {
		return err
	}
	if q.groups > 0 {
		return fmt.Errorf("%w: the queue pair is attached to %d groups; detach it first", verbs.ErrBusy, q.groups)
	}
	d.engine.Do(func() { d.engine.RemoveQP(q.hot) })
	delete(d.byPlace, q.hot.Number%numberPlaces)
	delete(d.byDoorbell, q.hot.Index)
	d.qps.remove(handle)
	d.events.forget(q.user)
	q.pd.users--
	q.sendCQ.users--
	q.recvCQ.users--
	return d.steering.RemoveQP(uint32(q.hot.Number))
}

// ModifyQP implements verbs.Provider.
func (d *Device) ModifyQP(handle verbs.Handle, attr *verbs.QPAttr, mask verbs.QPAttrMask, token uint32) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	q, err := d.qps.get(handle)
	if err != nil {
		return err
	}
	current := verbs.QPState(q.state.Load())
	next := current
	if mask&verbs.QPAttrState != 0 {
		next = attr.State
	}
	if err := d.checkModify(current, next, attr, mask); err != nil {
		return err
	}
	d.engine.Do(func() { err = q.apply(d.engine, current, next, attr, mask, token) })
	return err
}

// checkModify checks a change before anything is changed.
func (d *Device) checkModify(current, next verbs.QPState, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	if err := verbs.CheckModifyQP(current, next, verbs.QPTypeUD, mask); err != nil {
		return err
	}
	switch {
	case mask&verbs.QPAttrEnSQDAsyncNotify != 0 && attr.EnSQDAsyncNotify:
		return fmt.Errorf("%w: the event of a drained send queue", verbs.ErrUnsupported)
	case mask&verbs.QPAttrCurState != 0 && attr.CurState != current:
		return fmt.Errorf("%w: the queue pair is in %v, not in %v", verbs.ErrState, current, attr.CurState)
	case mask&verbs.QPAttrPort != 0 && attr.Port != 1:
		return fmt.Errorf("%w: port %d; the device has port 1", verbs.ErrInvalid, attr.Port)
	case mask&verbs.QPAttrPKeyIndex != 0 && attr.PKeyIndex != 0:
		return fmt.Errorf("%w: P_Key index %d; the table has index 0", verbs.ErrInvalid, attr.PKeyIndex)
	case mask&verbs.QPAttrSQPSN != 0 && attr.SQPSN > wire.PSNMask:
		return fmt.Errorf("%w: SQ PSN 0x%x has more than 24 bits", verbs.ErrInvalid, uint32(attr.SQPSN))
	case mask&verbs.QPAttrQKey != 0 && attr.QKey&wire.QKeyPrivileged != 0 && !d.privileged():
		return fmt.Errorf("%w: Q_Key %v has the high bit set, which needs CAP_NET_RAW", verbs.ErrPermission, attr.QKey)
	}
	return nil
}

// apply makes the change, between two bursts. The engine may have moved the
// queue pair on since the change was checked.
func (q *qp) apply(e *datapath.Engine, current, next verbs.QPState, attr *verbs.QPAttr, mask verbs.QPAttrMask, token uint32) error {
	if now := verbs.QPState(q.state.Load()); now != current {
		return fmt.Errorf("%w: the queue pair went to %v by itself; query it, and try again", verbs.ErrState, now)
	}
	if mask&verbs.QPAttrQKey != 0 {
		q.hot.QKey, q.attr.QKey = attr.QKey, attr.QKey
	}
	if mask&verbs.QPAttrPort != 0 {
		q.attr.Port = attr.Port
	}
	if mask&verbs.QPAttrSQPSN != 0 {
		q.hot.PSN, q.attr.SQPSN = attr.SQPSN, attr.SQPSN
	}
	if mask&verbs.QPAttrState != 0 {
		if next == verbs.QPStateReset {
			q.attr = verbs.QPAttr{}
			q.hot.QKey, q.hot.PSN, q.hot.Token = 0, 0, token
		}
		q.state.Store(uint32(next))
		e.SetState(q.hot, next)
	}
	return nil
}

// QueryQP implements verbs.Provider.
func (d *Device) QueryQP(handle verbs.Handle) (verbs.QPAttr, error) {
	if err := d.enter(); err != nil {
		return verbs.QPAttr{}, err
	}
	defer d.mu.Unlock()
	q, err := d.qps.get(handle)
	if err != nil {
		return verbs.QPAttr{}, err
	}
	attr := q.attr
	d.engine.Do(func() { attr.SQPSN = q.hot.PSN })
	attr.State = verbs.QPState(q.state.Load())
	attr.CurState = attr.State
	return attr, nil
}
