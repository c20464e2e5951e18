// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Refusals are answers without an owner: they keep no state, and are limited in number.

// refuse sends a refusal, unless there were too many.
func (m *Manager) refuse(now time.Time, path Path, write func(wire.MAD)) {
	if !m.refusals.take(now) {
		m.counters[RefusalsLimited]++
		return
	}
	m.send(path.answer(), write)
}

// refuseQuery answers a Get or a Set of any class: no attributes are supported here (IBA 13.4.7).
func (m *Manager) refuseQuery(now time.Time, path Path, h wire.MADHeader) {
	m.counters[Unsupported]++
	h.Method, h.Status = wire.MethodGetResp, wire.MADStatusUnsupported
	if h.Class == wire.ClassCM && h.ClassVersion != wire.ClassVersionCM {
		h.Status = wire.MADStatusBadVersion
	}
	m.refuse(now, path, func(mad wire.MAD) { mad.PutHeader(h) })
}

// refuseVersion answers the requests that have an answer for unknown versions.
func (m *Manager) refuseVersion(now time.Time, path Path, mad wire.MAD) {
	switch mad.Header().Attribute {
	case wire.AttributeREQ:
		m.rejectREQ(now, path, mad, wire.RejectClassVersion)
	case wire.AttributeSIDRReq:
		m.refuseSIDR(now, path, mad, wire.SIDRVersion)
	}
}

// refuseREQ refuses a connection.
func (m *Manager) refuseREQ(now time.Time, path Path, mad wire.MAD, reason wire.RejectReason) {
	m.counters[ConnectionsRejected]++
	m.rejectREQ(now, path, mad, reason)
}

func (m *Manager) rejectREQ(now time.Time, path Path, mad wire.MAD, reason wire.RejectReason) {
	rej := wire.REJ{CommIDs: wire.CommIDs{Remote: mad.CommIDs().Local}, Rejected: wire.AnsweredREQ, Reason: reason}
	m.refuse(now, path, func(answer wire.MAD) { answer.PutREJ(mad.Header().TransactionID, &rej) })
}

// rejectStale refuses a REQ or a REP of a queue pair that still has a connection here.
func (m *Manager) rejectStale(now time.Time, path Path, mad wire.MAD, rejected wire.Answered) {
	rej := wire.REJ{CommIDs: wire.CommIDs{Remote: mad.CommIDs().Local}, Rejected: rejected, Reason: wire.RejectStaleConnection}
	if rejected == wire.AnsweredREP {
		rej.CommIDs = swapped(mad)
	}
	m.refuse(now, path, func(answer wire.MAD) { answer.PutREJ(mad.Header().TransactionID, &rej) })
}

// refuseREP rejects a REP for a connection that this side has not requested (IBA 12.9.8).
func (m *Manager) refuseREP(now time.Time, path Path, mad wire.MAD) {
	m.counters[Stray]++
	rej := wire.REJ{CommIDs: swapped(mad), Rejected: wire.AnsweredREP, Reason: wire.RejectCommID}
	m.refuse(now, path, func(answer wire.MAD) { answer.PutREJ(mad.Header().TransactionID, &rej) })
}

// confirmDREQ confirms the end of an unknown connection: the peer repeats itself, or the connection belonged to a
// killed program.
func (m *Manager) confirmDREQ(now time.Time, path Path, mad wire.MAD) {
	m.counters[DisconnectsConfirmed]++
	drep := wire.DREP{CommIDs: swapped(mad)}
	m.refuse(now, path, func(answer wire.MAD) { answer.PutDREP(mad.Header().TransactionID, &drep) })
}

func swapped(mad wire.MAD) wire.CommIDs {
	ids := mad.CommIDs()
	return wire.CommIDs{Local: ids.Remote, Remote: ids.Local}
}

// refuseSIDR refuses a request for a datagram service.
func (m *Manager) refuseSIDR(now time.Time, path Path, mad wire.MAD, status wire.SIDRStatus) {
	asked := mad.SIDRReq()
	rep := wire.SIDRRep{RequestID: asked.RequestID, Status: status, ServiceID: asked.ServiceID}
	m.refuse(now, path, func(answer wire.MAD) { answer.PutSIDRRep(mad.Header().TransactionID, &rep) })
}

// bucket limits the rate of an action.
type bucket struct {
	spent int       // of refusalBurst
	since time.Time // start of the refill: each refusalEvery returns one
}

// The limit of refusals. Each may cause the host to query a neighbour that a forged address names.
const (
	refusalBurst = 100
	refusalEvery = 4 * time.Millisecond
)

// take takes one token; it returns false if none is left.
func (b *bucket) take(now time.Time) bool {
	if back := int(now.Sub(b.since) / refusalEvery); back >= b.spent {
		b.spent, b.since = 0, now
	} else {
		b.spent -= back
		b.since = b.since.Add(time.Duration(back) * refusalEvery)
	}
	if b.spent >= refusalBurst {
		return false
	}
	b.spent++
	return true
}
