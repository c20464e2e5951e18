//go:build linux

package hca

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// qp is a queue pair. The engine owns its state, and keeps the copy in state up to date.
type qp struct {
	entry          *datapath.QP
	connection     *datapath.Connection // nil for datagrams
	kind           verbs.QPType
	target         *target // of an XRC target, else nil
	pd             *pd
	sendCQ, recvCQ *cq
	srq            *srq                   // nil if it has a receive queue of its own
	tally          *tally                 // of counters that are attached; nil if there are none
	groups         map[wire.GID]wire.MLID // those that it is attached to
	memory         [][]byte               // of its queues
	events         eventSource
	state          atomic.Uint32
	attr           verbs.QPAttr // without State; under card.mu
	peer           *ah          // of a connected queue pair that knows it
}

// checkCap fills in defaults, and refuses a capacity beyond the limits. With an SRQ, what is said of
// receives does not count.
func checkCap(c *verbs.QPCap, shared bool) error {
	if shared {
		c.MaxRecvWR, c.MaxRecvSGE = 0, 0
	}
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

// createQP carries out provider.CreateQP. The queue pair is in RESET.
func createQP(s *Session, r provider.CreateQPRequest) (provider.CreateQPGrant, error) {
	if err := checkType(s, &r); err != nil {
		return provider.CreateQPGrant{}, err
	}
	if r.Type == verbs.QPTypeXRCSend { // it receives nothing
		r.RecvCQ, r.SRQ = r.SendCQ, 0
	}
	if err := checkCap(&r.Cap, r.SRQ != 0 || r.Type == verbs.QPTypeXRCSend); err != nil {
		return provider.CreateQPGrant{}, err
	}
	if err := s.begin(); err != nil {
		return provider.CreateQPGrant{}, err
	}
	defer s.life.work.Done()
	if err := obtainGSI(s, r.Type); err != nil {
		return provider.CreateQPGrant{}, err
	}
	q := &qp{kind: r.Type, groups: map[wire.GID]wire.MLID{}}
	q.events.id, q.events.kind, q.events.state = r.EventID, ObjectQP, &q.state
	q.entry = newQPEntry(s, q, &r)
	q.clearAttr()
	grant, err := q.makeQueues(s, &r)
	if err == nil {
		err = addQP(s, q, &r, &grant)
	}
	if err != nil {
		s.release(q.memory...)
		returnGSI(s, r.Type)
		return provider.CreateQPGrant{}, err
	}
	return grant, nil
}

// newQPEntry makes the entry in the engine's tables, without the fields that addQP fills in.
func newQPEntry(s *Session, q *qp, r *provider.CreateQPRequest) *datapath.QP {
	entry := &datapath.QP{
		Session: s.entry, DoorbellIndex: r.DoorbellIndex, CompletionToken: r.CompletionToken, PKey: wire.PKeyDefault, SigAll: r.SigAll, NoSelfLoopback: r.BlockSelfMcast,
		NoteState: func(state verbs.QPState, fatal bool) {
			q.state.Store(uint32(state))
			if fatal {
				s.note(&q.events, notedEvent(verbs.EventQPFatal))
			}
			if s.config.Observe != nil {
				s.note(&q.events, notedMove)
			}
		},
		NoteLastWQE: func() { s.note(&q.events, notedEvent(verbs.EventQPLastWQEReached)) },
		NoteEvent:   func(event verbs.EventType) { s.note(&q.events, notedEvent(event)) },
	}
	switch q.kind {
	case verbs.QPTypeRC:
		q.connection = datapath.NewConnection(wire.ServiceRC)
	case verbs.QPTypeUC:
		q.connection = datapath.NewConnection(wire.ServiceUC)
	case verbs.QPTypeXRCSend:
		q.connection = datapath.NewConnection(wire.ServiceXRC)
	default:
		entry.Serve(new(datapath.Datagrams))
		return entry
	}
	entry.Serve(q.connection)
	return entry
}

// makeQueues allocates the queues, and returns a grant with them.
func (q *qp) makeQueues(s *Session, r *provider.CreateQPRequest) (grant provider.CreateQPGrant, err error) {
	if err := q.makeSendQueue(s, r.Cap, &grant); err != nil {
		return grant, err
	}
	switch {
	case r.SRQ != 0:
		return grant, nil
	case q.kind == verbs.QPTypeXRCSend:
		return grant, q.lackRecv()
	}
	grant.RecvGeometry = ring.RecvGeometry(r.Cap.MaxRecvWR, r.Cap.MaxRecvSGE)
	if grant.RecvMemory, err = s.alloc(grant.RecvGeometry.Size()); err != nil {
		return grant, err
	}
	q.memory = append(q.memory, grant.RecvMemory)
	if q.entry.Recv, err = ring.NewRecvConsumer(grant.RecvMemory, grant.RecvGeometry); err != nil {
		return grant, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	grant.Cap.MaxRecvWR, grant.Cap.MaxRecvSGE = grant.RecvGeometry.Entries, grant.RecvGeometry.RecvRoom()
	return grant, nil
}

func (q *qp) makeSendQueue(s *Session, c verbs.QPCap, grant *provider.CreateQPGrant) (err error) {
	geometry, consumer, room := ring.SendGeometry, ring.NewSendConsumer, ring.Geometry.SendRoom
	switch {
	case q.kind == verbs.QPTypeXRCSend:
		geometry, consumer, room = ring.XRCGeometry, ring.NewXRCSendConsumer, ring.Geometry.XRCRoom
	case q.connected():
		geometry = ring.ConnectedGeometry
	}
	grant.SendGeometry = geometry(c.MaxSendWR, c.MaxSendSGE, c.MaxInlineData)
	if grant.SendMemory, err = s.alloc(grant.SendGeometry.Size()); err != nil {
		return err
	}
	q.memory = append(q.memory, grant.SendMemory)
	if q.entry.Send, err = consumer(grant.SendMemory, grant.SendGeometry); err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	q.entry.MaxSendSGE, q.entry.MaxInline = room(grant.SendGeometry)
	q.entry.MaxInline = min(q.entry.MaxInline, maxInline) // what is granted may be asked for
	grant.Cap.MaxSendWR, grant.Cap.MaxSendSGE, grant.Cap.MaxInlineData = grant.SendGeometry.Entries, q.entry.MaxSendSGE, q.entry.MaxInline
	return nil
}

// addQP gives the queue pair its number, and adds it to XDP's table, then to the engine's. If XDP
// redirects a packet for it before the engine knows it, the engine drops and counts the packet.
func addQP(s *Session, q *qp, r *provider.CreateQPRequest, grant *provider.CreateQPGrant) (err error) {
	if err := s.enter(); err != nil {
		return err
	}
	card := s.card
	defer card.mu.Unlock()
	if err := q.bind(s, r); err != nil {
		return err
	}
	if err := admitQP(s); err != nil {
		return err
	}
	q.entry.Number = card.numberFor(q.kind, q.engine())
	q.events.number = uint32(q.entry.Number)
	if grant.QP, err = s.qps.Add(q); err != nil {
		return err
	}
	if err := card.host.AddQP(uint32(q.entry.Number)); err != nil {
		s.qps.Remove(grant.QP)
		return network.HostError(err)
	}
	grant.Number = q.entry.Number
	if !s.internal {
		card.qps.Add(q.entry.Number, q)
	}
	s.qpsByDoorbell[q.entry.DoorbellIndex] = q
	q.pd.users++
	q.sendCQ.users++
	q.recvCQ.users++
	if q.srq != nil {
		q.srq.users++
	}
	q.engine().Do(func() { q.engine().AddQP(q.entry) })
	return nil
}

// admitQP returns an error if the session cannot have one more queue pair of the card. The caller holds card.mu.
func admitQP(s *Session) error {
	all := s.card.qps.Len()
	if all == maxQP && !s.internal {
		return fmt.Errorf("%w: the sessions of this card have %d QPs together; destroy some", verbs.ErrLimit, maxQP)
	}
	return s.config.Quota.Admit(quota.QPs, quota.Shared{Noun: "QPs of the card", Used: uint64(all), Most: maxQP})
}

// bind finds the objects that the queue pair refers to.
func (q *qp) bind(s *Session, r *provider.CreateQPRequest) (err error) {
	if q.pd, err = s.pds.Get(r.PD); err != nil {
		return err
	}
	if q.sendCQ, err = s.cqs.Get(r.SendCQ); err != nil {
		return err
	}
	if q.recvCQ, err = s.cqs.Get(r.RecvCQ); err != nil {
		return err
	}
	s.entry.Engine().Do(func() { err = q.checkCQs() })
	if err != nil {
		return err
	}
	if r.DoorbellIndex >= ring.MaxQueuePairs || s.qpsByDoorbell[r.DoorbellIndex] != nil {
		return fmt.Errorf("%w: doorbell index %d is taken or too large; a session serves one Context", verbs.ErrInvalid, r.DoorbellIndex)
	}
	q.entry.PD, q.entry.SendCQ, q.entry.RecvCQ = q.pd.number, q.sendCQ.entry, q.recvCQ.entry
	q.entry.RecvPD = q.entry.PD
	return q.bindSRQ(s, r.SRQ)
}

// engine is the one that serves the queue pair: that of its session, or of its XRC domain.
func (q *qp) engine() *datapath.Engine { return q.entry.Session.Engine() }

// checkCQs refuses CQs that were overrun: what completes to them is lost, and nothing reports that
// again. It runs in Do.
func (q *qp) checkCQs() error {
	if q.target == nil && (q.sendCQ.entry.Overrun() || q.recvCQ.entry.Overrun()) {
		return fmt.Errorf("%w: a CQ of the queue pair, so the queue pair completes nothing any more; make another CQ, and a queue pair on it", verbs.ErrCQOverrun)
	}
	return nil
}

// bindSRQ has the queue pair take its receives from an SRQ, unless the handle is 0. The memory that these name is checked
// against the SRQ's PD (IBA 10.2.9).
func (q *qp) bindSRQ(s *Session, handle provider.Handle) (err error) {
	if handle == 0 {
		return nil
	}
	if q.srq, err = s.srqs.Get(handle); err != nil {
		return err
	}
	q.entry.SRQ, q.entry.Recv, q.entry.RecvPD = q.srq.entry, q.srq.entry.Queue, q.srq.entry.PD
	return nil
}

// destroyQP carries out provider.DestroyQP.
func destroyQP(s *Session, r provider.DestroyQPRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	s.life.work.Add(1)
	defer s.life.work.Done()
	peer, err := removeQP(s, r.QP)
	if peer != nil {
		peer.abandon(s)
	}
	return err
}

// removeQP removes a queue pair under card.mu, which it releases. The peer's path is left without that lock.
func removeQP(s *Session, handle provider.Handle) (peer *ah, err error) {
	defer s.card.mu.Unlock()
	q, err := s.qps.Get(handle)
	if err != nil {
		return nil, err
	}
	if q.target != nil {
		peer, err = q.closeTarget(s, q.target.opener(s, handle))
		return peer, network.HostError(err)
	}
	if len(q.groups) > 0 {
		return nil, fmt.Errorf("%w: groups that the queue pair is attached to: %d; detach it first", verbs.ErrBusy, len(q.groups))
	}
	s.qps.Remove(handle)
	err = forgetQPs(s, []*qp{q})
	s.events.forget(&q.events)
	s.release(q.memory...)
	return q.peer, network.HostError(err)
}

// forgetQPs removes queue pairs from their groups, the engine and XDP, in this order. The caller
// holds card.mu.
func forgetQPs(s *Session, all []*qp) (failed error) {
	card := s.card
	for _, q := range all {
		for mgid, mlid := range q.groups {
			failed = errors.Join(failed, q.detach(s, mgid, mlid))
		}
	}
	s.entry.Engine().Do(func() {
		for _, q := range all {
			q.engine().RemoveQP(q.entry)
		}
	})
	for _, q := range all {
		if !s.internal {
			card.qps.Remove(q.entry.Number)
		}
		delete(s.qpsByDoorbell, q.entry.DoorbellIndex)
		q.pd.users--
		q.sendCQ.users--
		q.recvCQ.users--
		if q.srq != nil {
			q.srq.users--
		}
		failed = errors.Join(failed, card.host.RemoveQP(uint32(q.entry.Number)))
		returnGSI(s, q.kind)
	}
	return failed
}
