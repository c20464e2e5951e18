// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// target is the part of an XRC target that other queue pairs do not have. An XRC target belongs to its domain; the
// sessions that have opened it share one queue pair in their tables. It exists while one of them has a handle of it.
type target struct {
	domain  *domain
	openers []*opener // changed between two rounds
}

// opener is a handle of a target. It receives all events of the target.
type opener struct {
	owner  *owner
	handle provider.Handle
	by     *xrcd
	events eventSource
}

// opener returns the session's opener with a handle, or any of the session's openers for handle 0, which is never in
// use.
func (t *target) opener(of *owner, handle provider.Handle) *opener {
	for _, o := range t.openers {
		if o.owner == of && (o.handle == handle || handle == 0) {
			return o
		}
	}
	return nil
}

// shared reports whether another session has opened the target.
func (t *target) shared(of *owner) bool {
	return slices.ContainsFunc(t.openers, func(o *opener) bool { return o.owner != of })
}

// note notifies all sessions that have opened the target. The engine calls it, under its lease.
func (t *target) note(what uint32) {
	for _, o := range t.openers {
		o.owner.events.note(&o.events, what)
	}
}

// targets opens the XRC targets of domains for a session. Their handles are in the session's table of queue pairs.
type targets struct {
	qps   *qps
	xrcds *xrcds
}

// create carries out provider.CreateXRCTarget. The queue pair is in RESET.
func (t *targets) create(r provider.CreateXRCTargetRequest) (grant provider.OpenQPGrant, err error) {
	if err := t.qps.owner.enter(); err != nil {
		return grant, err
	}
	defer t.qps.owner.leave()
	x, err := t.xrcds.Get(r.XRCD)
	if err != nil {
		return grant, err
	}
	if err := t.qps.admit(); err != nil {
		return grant, err
	}
	q, err := newTarget(x.domain)
	if err != nil {
		return grant, err
	}
	q.entry.Number = t.qps.numberFor(q.kind, q.engine())
	o, err := t.qps.addOpener(q, x, r.EventID)
	if err != nil {
		return grant, err
	}
	if err := t.qps.owner.device.host.AddQP(uint32(q.entry.Number)); err != nil {
		t.qps.forgetOpener(q, o)
		return grant, network.HostError(err)
	}
	t.qps.numbers.Add(q.entry.Number, q)
	x.domain.add(q)
	q.engine().Do(func() { q.engine().AddQP(q.entry) })
	return provider.OpenQPGrant{QP: o.handle, Number: q.entry.Number}, nil
}

// newTarget creates a target. Its queues are the card's own, and stay empty.
func newTarget(d *domain) (*qp, error) {
	q := &qp{kind: verbs.QPTypeXRCRecv, groups: map[wire.GID]wire.MLID{}, pd: &d.pd, target: &target{domain: d}}
	q.entry = &datapath.QP{
		Session: d.session, DoorbellIndex: d.place(), PKey: wire.PKeyDefault, Domain: d.entry,
		NoteState: func(state verbs.QPState, fatal bool) {
			q.state.Store(uint32(state))
			if q.target.note(notedMove); fatal {
				q.target.note(notedEvent(verbs.EventQPFatal))
			}
		},
		NoteLastWQE: func() { q.target.note(notedEvent(verbs.EventQPLastWQEReached)) },
		NoteEvent:   func(event verbs.EventType) { q.target.note(notedEvent(event)) },
	}
	q.connection = datapath.NewConnection(wire.ServiceXRC)
	q.entry.Serve(q.connection)
	q.clearAttr()
	var err error
	send := ring.SendGeometry(1, 0, 0)
	if q.entry.Send, err = ring.NewSendConsumer(ring.Alloc(send.Size()), send); err == nil {
		err = q.lackRecv()
	}
	return q, err
}

// addOpener adds a handle of the target to the session. The caller holds the card's lock.
func (t *qps) addOpener(q *qp, x *xrcd, eventID uint64) (*opener, error) {
	handle, err := t.Add(q)
	if err != nil {
		return nil, err
	}
	o := &opener{owner: t.owner, handle: handle, by: x}
	o.events.id, o.events.kind, o.events.state, o.events.number = eventID, ObjectQP, &q.state, uint32(q.entry.Number)
	q.engine().Do(func() { q.target.openers = append(q.target.openers, o) })
	x.users++
	return o, nil
}

// open carries out provider.OpenQP.
func (t *targets) open(r provider.OpenQPRequest) (grant provider.OpenQPGrant, err error) {
	if err := t.qps.owner.enter(); err != nil {
		return grant, err
	}
	defer t.qps.owner.leave()
	x, err := t.xrcds.Get(r.XRCD)
	if err != nil {
		return grant, err
	}
	q := x.domain.targets[r.Number]
	if q == nil {
		return grant, fmt.Errorf("%w: the XRC domain has no target queue pair %v", verbs.ErrInvalid, r.Number)
	}
	o, err := t.qps.addOpener(q, x, r.EventID)
	if err != nil {
		return grant, err
	}
	return provider.OpenQPGrant{QP: o.handle, Number: r.Number, State: verbs.QPState(q.state.Load())}, nil
}

// forgetOpener removes a handle of the target from the session. The caller holds the card's lock.
func (t *qps) forgetOpener(q *qp, o *opener) {
	of := q.target
	q.engine().Do(func() { of.openers = slices.DeleteFunc(of.openers, func(other *opener) bool { return other == o }) })
	o.by.users--
	t.Remove(o.handle)
	t.owner.events.forget(&o.events)
}

// closeTarget closes a handle of the target, and with the last handle destroys the queue pair. It returns the peer that
// is then unused. The caller holds the card's lock.
func (t *qps) closeTarget(q *qp, o *opener) (peer *ah, err error) {
	if t.forgetOpener(q, o); len(q.target.openers) > 0 {
		return nil, nil
	}
	q.engine().Do(func() { q.engine().RemoveQP(q.entry) })
	t.numbers.Remove(q.entry.Number)
	q.target.domain.remove(q)
	return q.peer, t.owner.device.host.RemoveQP(uint32(q.entry.Number))
}

// closeTargets closes the session's handles of targets, at its end. It returns the unused peers, whose paths the caller
// releases. The caller holds the card's lock.
func (t *qps) closeTargets() (left []*ah, failed error) {
	for _, q := range t.All() {
		if q.target == nil {
			continue
		}
		peer, err := t.closeTarget(q, q.target.opener(t.owner, 0))
		if peer != nil {
			left = append(left, peer)
		}
		failed = errors.Join(failed, network.HostError(err))
	}
	return left, failed
}
