// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// create carries out provider.CreateQP. The queue pair is in RESET.
func (t *qps) create(r provider.CreateQPRequest) (provider.CreateQPGrant, error) {
	if err := t.checkType(&r); err != nil {
		return provider.CreateQPGrant{}, err
	}
	if r.Type == verbs.QPTypeXRCSend { // it has no receives
		r.RecvCQ, r.SRQ = r.SendCQ, 0
	}
	if err := checkCap(&r.Cap, r.SRQ != 0 || r.Type == verbs.QPTypeXRCSend); err != nil {
		return provider.CreateQPGrant{}, err
	}
	if err := t.owner.begin(); err != nil {
		return provider.CreateQPGrant{}, err
	}
	defer t.owner.finish()
	if err := t.obtainGSI(r.Type); err != nil {
		return provider.CreateQPGrant{}, err
	}
	q := &qp{kind: r.Type, groups: map[wire.GID]wire.MLID{}}
	q.events.id, q.events.kind, q.events.state = r.EventID, ObjectQP, &q.state
	q.entry = t.newEntry(q, &r)
	q.clearAttr()
	grant, err := q.makeQueues(t.owner, &r)
	if err == nil {
		err = t.link(q, &r, &grant)
	}
	if err != nil {
		t.owner.release(q.memory...)
		t.returnGSI(r.Type)
		return provider.CreateQPGrant{}, err
	}
	return grant, nil
}

// link assigns the queue pair its number, and adds it to XDP's table, then to the engine's. The engine drops and counts
// packets that XDP redirects before the engine has the queue pair.
func (t *qps) link(q *qp, r *provider.CreateQPRequest, grant *provider.CreateQPGrant) (err error) {
	if err := t.owner.enter(); err != nil {
		return err
	}
	defer t.owner.leave()
	if err := q.bind(t, r); err != nil {
		return err
	}
	if err := t.admit(); err != nil {
		return err
	}
	q.entry.Number = t.numberFor(q.kind, q.engine())
	q.events.number = uint32(q.entry.Number)
	if grant.QP, err = t.Add(q); err != nil {
		return err
	}
	if err := t.owner.device.host.AddQP(uint32(q.entry.Number)); err != nil {
		t.Remove(grant.QP)
		return network.HostError(err)
	}
	grant.Number = q.entry.Number
	if !t.owner.internal {
		t.numbers.Add(q.entry.Number, q)
	}
	t.byDoorbell[q.entry.DoorbellIndex] = q
	q.pd.users++
	q.sendCQ.users++
	q.recvCQ.users++
	if q.srq != nil {
		q.srq.users++
	}
	q.engine().Do(func() { q.engine().AddQP(q.entry) })
	return nil
}

// admit returns an error if the session cannot have another queue pair of the card. The caller holds the card's lock.
func (t *qps) admit() error {
	all := t.numbers.Len()
	if all == maxQP && !t.owner.internal {
		return fmt.Errorf("%w: the sessions of this card have %d QPs together, the maximum; destroy some", verbs.ErrLimit, maxQP)
	}
	return t.owner.config.Quota.Admit(quota.QPs, quota.Shared{Noun: "QPs of the card", Used: uint64(all), Most: maxQP})
}

// checkType rejects unsupported types, and a GSI queue pair for a program that lacks the privilege.
func (t *qps) checkType(r *provider.CreateQPRequest) error {
	switch r.Type {
	case verbs.QPTypeUD, verbs.QPTypeRC, verbs.QPTypeUC, verbs.QPTypeXRCSend:
		return nil
	case verbs.QPTypeXRCRecv:
		return fmt.Errorf("%w: a queue pair of type XRC_RECV belongs to an XRC domain; create it there", verbs.ErrInvalid)
	case verbs.QPTypeGSI:
		return t.checkGSI(r)
	case verbs.QPTypeSMI:
		return fmt.Errorf("%w: QP 0 (SMI, type 0) is for InfiniBand's subnet management, which RoCE does not have; supported are %s", verbs.ErrUnsupported, typesThere)
	case verbs.QPTypeRawPacket:
		return fmt.Errorf("%w: queue pairs of type %v; supported are %s", verbs.ErrUnsupported, r.Type, typesThere)
	}
	return fmt.Errorf("%w: unknown queue pair type %d; supported are %s", verbs.ErrInvalid, r.Type, typesThere)
}

const typesThere = "RC (2), UC (3), UD (4), XRC_SEND (9), XRC_RECV (10) in an XRC domain, and GSI (1) once per card"

// connected reports whether the queue pair has a single peer.
func (q *qp) connected() bool { return q.connection != nil }

func (t *qps) checkGSI(r *provider.CreateQPRequest) error {
	switch {
	case r.Port != 1:
		return fmt.Errorf("%w: port %d of the GSI queue pair; the device has port 1", verbs.ErrInvalid, r.Port)
	case !t.owner.config.mayPrivileged():
		return fmt.Errorf("%w: QP 1 (GSI) has a Q_Key with the high bit set, which needs CAP_NET_RAW", verbs.ErrPermission)
	}
	return nil
}

// obtainGSI makes the card's manager yield QP 1 for a GSI queue pair of a program. The caller holds no lock.
func (t *qps) obtainGSI(kind verbs.QPType) error {
	if kind != verbs.QPTypeGSI || t.owner.internal {
		return nil
	}
	return t.owner.device.manager.Yield()
}

// returnGSI returns QP 1 to the manager. The caller may hold Card.mu.
func (t *qps) returnGSI(kind verbs.QPType) {
	if kind == verbs.QPTypeGSI && !t.owner.internal {
		t.owner.device.manager.Regain()
	}
}

// numberFor returns the number of a new queue pair of an engine. The caller holds the card's lock.
func (t *qps) numberFor(kind verbs.QPType, e *datapath.Engine) wire.QPN {
	if kind == verbs.QPTypeGSI {
		return wire.QPNGSI // Manager.Yield has checked that no program has it
	}
	return t.numbers.DrawPreferred(e.Prefers)
}

// checkCap sets defaults, and rejects capacities beyond the limits. With an SRQ, the capacities for receives are
// ignored.
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

// newEntry returns the entry in the engine's tables, without the fields that link and bind set.
func (t *qps) newEntry(q *qp, r *provider.CreateQPRequest) *datapath.QP {
	entry := &datapath.QP{
		Session: t.owner.entry, DoorbellIndex: r.DoorbellIndex, CompletionToken: r.CompletionToken, PKey: wire.PKeyDefault, SigAll: r.SigAll, NoSelfLoopback: r.BlockSelfMcast,
		NoteState: func(state verbs.QPState, fatal bool) {
			q.state.Store(uint32(state))
			if fatal {
				t.owner.events.note(&q.events, notedEvent(verbs.EventQPFatal))
			}
			if t.owner.config.Observe != nil {
				t.owner.events.note(&q.events, notedMove)
			}
		},
		NoteLastWQE: func() { t.owner.events.note(&q.events, notedEvent(verbs.EventQPLastWQEReached)) },
		NoteEvent:   func(event verbs.EventType) { t.owner.events.note(&q.events, notedEvent(event)) },
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

// makeQueues allocates the queues and returns a grant with them.
func (q *qp) makeQueues(o *owner, r *provider.CreateQPRequest) (grant provider.CreateQPGrant, err error) {
	if err := q.makeSendQueue(o, r.Cap, &grant); err != nil {
		return grant, err
	}
	switch {
	case r.SRQ != 0:
		return grant, nil
	case q.kind == verbs.QPTypeXRCSend:
		return grant, q.lackRecv()
	}
	grant.RecvGeometry = ring.RecvGeometry(r.Cap.MaxRecvWR, r.Cap.MaxRecvSGE)
	if grant.RecvMemory, err = o.alloc(grant.RecvGeometry.Size()); err != nil {
		return grant, err
	}
	q.memory = append(q.memory, grant.RecvMemory)
	if q.entry.Recv, err = ring.NewRecvConsumer(grant.RecvMemory, grant.RecvGeometry); err != nil {
		return grant, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	grant.Cap.MaxRecvWR, grant.Cap.MaxRecvSGE = grant.RecvGeometry.Entries, grant.RecvGeometry.RecvRoom()
	return grant, nil
}

func (q *qp) makeSendQueue(o *owner, c verbs.QPCap, grant *provider.CreateQPGrant) (err error) {
	geometry, consumer, room := ring.SendGeometry, ring.NewSendConsumer, ring.Geometry.SendRoom
	switch {
	case q.kind == verbs.QPTypeXRCSend:
		geometry, consumer, room = ring.XRCGeometry, ring.NewXRCSendConsumer, ring.Geometry.XRCRoom
	case q.connected():
		geometry = ring.ConnectedGeometry
	}
	grant.SendGeometry = geometry(c.MaxSendWR, c.MaxSendSGE, c.MaxInlineData)
	if grant.SendMemory, err = o.alloc(grant.SendGeometry.Size()); err != nil {
		return err
	}
	q.memory = append(q.memory, grant.SendMemory)
	if q.entry.Send, err = consumer(grant.SendMemory, grant.SendGeometry); err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	q.entry.MaxSendSGE, q.entry.MaxInline = room(grant.SendGeometry)
	q.entry.MaxInline = min(q.entry.MaxInline, maxInline) // the granted limit must be valid in a request
	grant.Cap.MaxSendWR, grant.Cap.MaxSendSGE, grant.Cap.MaxInlineData = grant.SendGeometry.Entries, q.entry.MaxSendSGE, q.entry.MaxInline
	return nil
}

// lackRecv gives a queue pair without receives an empty receive queue in memory of the card.
func (q *qp) lackRecv() (err error) {
	recv := ring.RecvGeometry(1, 0)
	q.entry.Recv, err = ring.NewRecvConsumer(ring.Alloc(recv.Size()), recv)
	return err
}

// clearAttr sets the attributes to those of RESET. The GSI queue pair already has its port and its Q_Key in RESET.
func (q *qp) clearAttr() {
	q.attr, q.entry.QKey = verbs.QPAttr{}, 0
	q.entry.SetPSN(0)
	if q.kind == verbs.QPTypeGSI {
		q.attr.Port, q.attr.QKey, q.entry.QKey = 1, wire.QKeyGSI, wire.QKeyGSI
	}
}
