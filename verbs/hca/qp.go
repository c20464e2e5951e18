// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// qp is a queue pair. The engine owns its state, and updates the copy in state.
type qp struct {
	entry          *datapath.QP
	connection     *datapath.Connection // nil for datagrams
	kind           verbs.QPType
	target         *target // of an XRC target, else nil
	pd             *pd
	sendCQ, recvCQ *cq
	srq            *srq                   // nil if it has its own receive queue
	tally          *tally                 // its attached counters; nil if there are none
	groups         map[wire.GID]wire.MLID // groups that it is attached to
	memory         [][]byte               // memory of its queues
	events         eventSource
	state          atomic.Uint32
	attr           verbs.QPAttr // without State; under the card's lock
	peer           *ah          // nil for a queue pair without a peer
}

// qps holds the queue pairs of a session.
type qps struct {
	handles.Table[qp]
	owner      *owner
	pds        *pds
	cqs        *cqs
	srqs       *srqs
	numbers    *handles.Numbers[qp] // the card's
	byDoorbell map[uint32]*qp
}

// bind finds the objects that the queue pair refers to.
func (q *qp) bind(t *qps, r *provider.CreateQPRequest) (err error) {
	if q.pd, err = t.pds.Get(r.PD); err != nil {
		return err
	}
	if q.sendCQ, err = t.cqs.Get(r.SendCQ); err != nil {
		return err
	}
	if q.recvCQ, err = t.cqs.Get(r.RecvCQ); err != nil {
		return err
	}
	t.owner.engine().Do(func() { err = q.checkCQs() })
	if err != nil {
		return err
	}
	if r.DoorbellIndex >= ring.MaxQueuePairs || t.byDoorbell[r.DoorbellIndex] != nil {
		return fmt.Errorf("%w: doorbell index %d is in use or too large; a session serves one Context", verbs.ErrInvalid, r.DoorbellIndex)
	}
	q.entry.PD, q.entry.SendCQ, q.entry.RecvCQ = q.pd.number, q.sendCQ.entry, q.recvCQ.entry
	q.entry.RecvPD = q.entry.PD
	return q.bindSRQ(t, r.SRQ)
}

// engine returns the engine that serves the queue pair: that of its session, or of its XRC domain.
func (q *qp) engine() *datapath.Engine { return q.entry.Session.Engine() }

// checkCQs rejects CQs that have overrun: completions to them are lost, and nothing reports that again. It runs in Do.
func (q *qp) checkCQs() error {
	if q.target == nil && (q.sendCQ.entry.Overrun() || q.recvCQ.entry.Overrun()) {
		return fmt.Errorf("%w: a CQ of the queue pair, which therefore cannot complete requests; make another CQ, and a queue pair on it", verbs.ErrCQOverrun)
	}
	return nil
}

// bindSRQ sets the SRQ from which the queue pair receives, unless the handle is 0. The memory of its receives is
// checked against the SRQ's PD (IBA 10.2.9).
func (q *qp) bindSRQ(t *qps, handle provider.Handle) (err error) {
	if handle == 0 {
		return nil
	}
	if q.srq, err = t.srqs.Get(handle); err != nil {
		return err
	}
	q.entry.SRQ, q.entry.Recv, q.entry.RecvPD = q.srq.entry, q.srq.entry.Queue, q.srq.entry.PD
	return nil
}

// destroy carries out provider.DestroyQP.
func (t *qps) destroy(r provider.DestroyQPRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	t.owner.life.work.Add(1)
	defer t.owner.finish()
	peer, err := t.unlink(r.QP)
	if peer != nil {
		peer.abandon()
	}
	return err
}

// unlink removes a queue pair under the card's lock, which it releases. The caller releases the peer's path without
// that lock.
func (t *qps) unlink(handle provider.Handle) (peer *ah, err error) {
	defer t.owner.leave()
	q, err := t.Get(handle)
	if err != nil {
		return nil, err
	}
	if q.target != nil {
		peer, err = t.closeTarget(q, q.target.opener(t.owner, handle))
		return peer, network.HostError(err)
	}
	if len(q.groups) > 0 {
		return nil, fmt.Errorf("%w: the queue pair is attached to %d groups; detach it first", verbs.ErrBusy, len(q.groups))
	}
	t.Remove(handle)
	err = t.forget([]*qp{q})
	t.owner.events.forget(&q.events)
	t.owner.release(q.memory...)
	return q.peer, network.HostError(err)
}

// forget removes queue pairs from their groups, the engine and XDP, in this order. The caller holds the card's lock.
func (t *qps) forget(all []*qp) (failed error) {
	t.owner.engine().Do(func() {
		for _, q := range all {
			q.engine().RemoveQP(q.entry)
		}
	})
	for _, q := range all {
		if !t.owner.internal {
			t.numbers.Remove(q.entry.Number)
		}
		delete(t.byDoorbell, q.entry.DoorbellIndex)
		q.pd.users--
		q.sendCQ.users--
		q.recvCQ.users--
		if q.srq != nil {
			q.srq.users--
		}
		failed = errors.Join(failed, t.owner.device.host.RemoveQP(uint32(q.entry.Number)))
		t.returnGSI(q.kind)
	}
	return failed
}

// describe describes the object for Session.Objects.
func (q *qp) describe(handle provider.Handle) Object {
	e := q.entry
	o := Object{
		Handle: handle, Number: uint32(e.Number), Type: q.kind, State: e.State, QKey: e.QKey, PSN: e.PSN(), Users: uint32(len(q.groups)),
	}
	if q.target == nil {
		o.PD, o.SendCQ, o.RecvCQ, o.Size, o.Used = q.pd.handle, q.sendCQ.handle, q.recvCQ.handle, e.Send.Entries(), e.Send.Waiting()
	}
	if q.peer != nil {
		o.PeerQPN, o.Source, o.Dest = q.connection.PeerQPN, q.peer.source, q.connection.Peer
	}
	switch {
	case q.srq != nil:
		o.SRQ = q.srq.handle
	case q.kind != verbs.QPTypeXRCSend && q.target == nil:
		o.RecvSize, o.RecvUsed = e.Recv.Entries(), e.Recv.Waiting()
	}
	return o
}

// flush changes the queue pair to ERR, unless it is in RESET. It runs in Do.
func (q *qp) flush() {
	if verbs.QPState(q.state.Load()) != verbs.QPStateReset {
		q.state.Store(uint32(verbs.QPStateErr))
		q.entry.SetState(verbs.QPStateErr)
	}
}

// releaseAll releases the memory of all queue pairs, at the end of the session.
func (t *qps) releaseAll() {
	for _, q := range t.All() {
		t.owner.release(q.memory...)
	}
}
