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

// target is what an XRC target has besides what a queue pair has: it is its domain's, and the sessions that have
// opened it have one queue pair in their tables. It lives while one of them has a handle of it.
type target struct {
	domain  *domain
	openers []*opener // changed between two rounds
}

// opener is a handle of a target, which gets all of its events.
type opener struct {
	session *Session
	handle  provider.Handle
	by      *xrcd
	events  eventSource
}

// opener returns the session's opener with a handle; any of the session's for handle 0, which names none.
func (t *target) opener(s *Session, handle provider.Handle) *opener {
	for _, o := range t.openers {
		if o.session == s && (o.handle == handle || handle == 0) {
			return o
		}
	}
	return nil
}

// shared reports whether another session has the target too.
func (t *target) shared(s *Session) bool {
	return slices.ContainsFunc(t.openers, func(o *opener) bool { return o.session != s })
}

// note notifies all sessions that have opened the target. The engine calls it, under its lease.
func (t *target) note(what uint32) {
	for _, o := range t.openers {
		o.session.note(&o.events, what)
	}
}

// createXRCTarget carries out provider.CreateXRCTarget. The queue pair is in RESET.
func createXRCTarget(s *Session, r provider.CreateXRCTargetRequest) (grant provider.OpenQPGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	x, err := s.xrcds.Get(r.XRCD)
	if err != nil {
		return grant, err
	}
	if err := admitQP(s); err != nil {
		return grant, err
	}
	q, err := newTarget(x.domain)
	if err != nil {
		return grant, err
	}
	card := s.card
	q.entry.Number = card.numberFor(q.kind, q.engine())
	o, err := q.openTarget(s, x, r.EventID)
	if err != nil {
		return grant, err
	}
	if err := card.host.AddQP(uint32(q.entry.Number)); err != nil {
		q.forgetOpener(s, o)
		return grant, network.HostError(err)
	}
	card.qps.Add(q.entry.Number, q)
	x.domain.add(q)
	q.engine().Do(func() { q.engine().AddQP(q.entry) })
	return provider.OpenQPGrant{QP: o.handle, Number: q.entry.Number}, nil
}

// newTarget makes a target. Its queues are the card's own, and stay empty.
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

// lackRecv is for a queue pair without receives: its queue is the card's own, and stays empty.
func (q *qp) lackRecv() (err error) {
	recv := ring.RecvGeometry(1, 0)
	q.entry.Recv, err = ring.NewRecvConsumer(ring.Alloc(recv.Size()), recv)
	return err
}

// openTarget adds a handle of the target to the session. The caller holds card.mu.
func (q *qp) openTarget(s *Session, x *xrcd, eventID uint64) (*opener, error) {
	handle, err := s.qps.Add(q)
	if err != nil {
		return nil, err
	}
	o := &opener{session: s, handle: handle, by: x}
	o.events.id, o.events.kind, o.events.state, o.events.number = eventID, ObjectQP, &q.state, uint32(q.entry.Number)
	q.engine().Do(func() { q.target.openers = append(q.target.openers, o) })
	x.users++
	return o, nil
}

// openQP carries out provider.OpenQP.
func openQP(s *Session, r provider.OpenQPRequest) (grant provider.OpenQPGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	x, err := s.xrcds.Get(r.XRCD)
	if err != nil {
		return grant, err
	}
	q := x.domain.targets[r.Number]
	if q == nil {
		return grant, fmt.Errorf("%w: the XRC domain has no target queue pair %v", verbs.ErrInvalid, r.Number)
	}
	o, err := q.openTarget(s, x, r.EventID)
	if err != nil {
		return grant, err
	}
	return provider.OpenQPGrant{QP: o.handle, Number: r.Number, State: verbs.QPState(q.state.Load())}, nil
}

// forgetOpener removes a handle of the target from its session. The caller holds card.mu.
func (q *qp) forgetOpener(s *Session, o *opener) {
	t := q.target
	q.engine().Do(func() { t.openers = slices.DeleteFunc(t.openers, func(other *opener) bool { return other == o }) })
	o.by.users--
	s.qps.Remove(o.handle)
	s.events.forget(&o.events)
}

// closeTarget closes a handle of the target, and with the last one destroys the queue pair. It returns the peer that is
// not used any more. The caller holds card.mu.
func (q *qp) closeTarget(s *Session, o *opener) (peer *ah, err error) {
	if q.forgetOpener(s, o); len(q.target.openers) > 0 {
		return nil, nil
	}
	card, d := s.card, q.target.domain
	q.engine().Do(func() { q.engine().RemoveQP(q.entry) })
	card.qps.Remove(q.entry.Number)
	d.remove(q)
	err = errors.Join(err, card.host.RemoveQP(uint32(q.entry.Number)))
	return q.peer, err
}

// failTargets notes that the engine has stopped the targets of a domain, after a contained panic.
func (card *Card) failTargets(entry *datapath.Session) {
	card.mu.Lock()
	defer card.mu.Unlock()
	for q := range card.qps.All() {
		if q.target == nil || q.entry.Session != entry {
			continue
		}
		q.engine().Do(func() {
			if q.state.Swap(uint32(q.entry.State)) != uint32(q.entry.State) {
				q.target.note(notedEvent(verbs.EventQPFatal) | notedMove)
			}
		})
	}
}
