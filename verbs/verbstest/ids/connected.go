// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// Connections of ids with queue pairs.
var connectedTests = []rig.Test{
	{Name: "ids: queue pairs of a connection", Run: idConnectedQPs},
	{Name: "ids: attributes of a connection's queue pairs", Run: idConnectedAttributes},
	{Name: "ids: queue pairs of the program's own", Run: idConnectedOwnQPs},
	{Name: "ids: queue pairs of connections that fail", Run: idConnectedFails},
	{Name: "ids: unreliable connections", Run: idUnreliable},
	{Name: "ids: XRC", Run: idXRC},
}

// queuePairOf creates an id's queue pair, and a region that the peer can access.
func (e *idEnd) queuePairOf(id *cm.ID) rig.Peer {
	e.Helper()
	mr, err := e.PD.AllocMR(rig.RegionLen, verbs.AccessLocalWrite|rig.AllAccess)
	rig.Check(e, err)
	return rig.Peer{Station: e.Station, QP: e.queuePair(id), MR: mr}
}

// meetAt connects two ids that have queue pairs, to an address of b.
func (m *meeting) meetAt(address netip.Addr) *rig.Peers {
	m.Helper()
	m.active = m.a.id(cm.PortSpaceTCP)
	m.a.routed(m.active, port(address, m.at))
	a := m.a.queuePairOf(m.active)
	rig.Check(m, m.active.Connect(&cm.ConnParam{ResponderResources: cm.MaxResources, InitiatorDepth: 4, RetryCount: 6, RNRRetryCount: 5}))
	request := m.b.request(m.service)
	m.passive = request.ID
	b := m.b.queuePairOf(m.passive)
	rig.Check(m, m.passive.Accept(&cm.ConnParam{ResponderResources: cm.MaxResources, InitiatorDepth: 2, RNRRetryCount: 7}))
	m.a.event(m.active, cm.EventEstablished)
	m.b.event(m.passive, cm.EventEstablished)
	return &rig.Peers{A: a, B: b}
}

// idConnectedQPs checks that the queue pairs of both ends execute all operations of their type, until one end
// disconnects.
func idConnectedQPs(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	for _, address := range []netip.Addr{w.B.End.IPv4, w.B.End.IPv6} {
		p := m.meetAt(address)
		for _, way := range [][2]*rig.Peer{{&p.A, &p.B}, {&p.B, &p.A}} {
			from, to := way[0], way[1]
			want := rig.Pattern(5000, 3)
			copy(from.MR.Bytes(), want)
			to.Recv(5, 0, rig.RegionLen)
			from.Post(from.Request(verbs.WRSend, to, 5000))
			to.Expect(rig.OK(5))
			from.Expect(rig.OK(1))
			clear(from.MR.Bytes())
			from.Post(from.Request(verbs.WRRDMARead, to, 5000))
			from.Expect(rig.OK(1))
			if !bytes.Equal(from.MR.Bytes()[:5000], want) {
				t.Errorf("to %v: the received bytes differ from the sent ones", address)
			}
		}
		p.B.Recv(6, 0, 1)
		rig.Check(t, m.active.Disconnect())
		m.b.event(m.passive, cm.EventDisconnected)
		rig.Check(t, m.passive.Disconnect())
		p.B.Expect(rig.Outcome{ID: 6, Status: verbs.WCWRFlushErr})
		m.a.event(m.active, cm.EventDisconnected)
		for _, id := range []*cm.ID{m.active, m.passive} {
			if id.QP().State() != verbs.QPStateErr {
				t.Errorf("%v after the end", id.QP().State())
			}
			rig.Check(t, id.DestroyQP())
			rig.Check(t, id.Close())
		}
	}
}

// idConnectedAttributes checks that both queue pairs have the negotiated attributes.
func idConnectedAttributes(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	p := m.meetAt(w.B.End.IPv4)
	a, _, err := p.A.QP.Query()
	rig.Check(t, err)
	b, _, err := p.B.QP.Query()
	rig.Check(t, err)
	if a.SQPSN != b.RQPSN || b.SQPSN != a.RQPSN || a.DestQPN != p.B.QP.Number() || b.DestQPN != p.A.QP.Number() || a.PathMTU != b.PathMTU || a.PathMTU == 0 {
		t.Errorf("%+v and\n%+v", a, b)
	}
	const all = verbs.AccessRemoteRead | verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic
	if a.MaxRDAtomic != 4 || b.MaxDestRDAtomic != 4 || b.MaxRDAtomic != 2 || a.MaxDestRDAtomic != 2 || a.AccessFlags != all || b.AccessFlags != all {
		t.Errorf("READs and atomics: %+v and\n%+v", a, b)
	}
	if a.RetryCnt != 6 || b.RetryCnt != 6 || a.RNRRetry != 7 || b.RNRRetry != 5 || a.Timeout != 19 || b.Timeout != 19 {
		t.Errorf("retries: %+v and\n%+v", a, b)
	}
	if a.AHAttr.GRH.FlowLabel == 0 || a.AHAttr.GRH.FlowLabel != b.AHAttr.GRH.FlowLabel || a.AHAttr.GRH.HopLimit != 64 || b.AHAttr.GRH.HopLimit != 64 {
		t.Errorf("paths: %+v and\n%+v", a.AHAttr, b.AHAttr)
	}
}

// idConnectedOwnQPs connects queue pairs that the program creates and modifies itself, with the attributes that
// InitQPAttr returns.
func idConnectedOwnQPs(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	a, b := w.A.Peer(verbs.QPTypeRC), w.B.Peer(verbs.QPTypeRC)
	m.active = m.a.id(cm.PortSpaceTCP)
	m.a.routed(m.active, port(w.B.End.IPv4, m.at))
	rig.Check(t, m.active.Connect(&cm.ConnParam{QPN: a.QP.Number(), InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}))
	m.passive = m.b.request(m.service).ID
	bring := func(id *cm.ID, qp *verbs.QP) {
		t.Helper()
		for _, state := range []verbs.QPState{verbs.QPStateInit, verbs.QPStateRTR, verbs.QPStateRTS} {
			attr, mask, err := id.InitQPAttr(state)
			rig.Check(t, err)
			rig.Check(t, qp.Modify(&attr, mask))
		}
	}
	bring(m.passive, b.QP)
	rig.Check(t, m.passive.Accept(&cm.ConnParam{QPN: b.QP.Number(), ResponderResources: 1, RNRRetryCount: 7}))
	m.a.event(m.active, cm.EventConnectResponse)
	bring(m.active, a.QP)
	rig.Check(t, m.active.Accept(nil))
	m.b.event(m.passive, cm.EventEstablished)
	b.Recv(5, 0, 100)
	a.Post(a.Request(verbs.WRSend, &b, 100))
	b.Expect(rig.OK(5))
	a.Expect(rig.OK(1))
}

// idConnectedFails checks that the queue pair of an end that fails or is rejected changes to ERR, and that the other
// end is notified.
func idConnectedFails(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	request := func() *verbs.QP {
		m.active = m.a.id(cm.PortSpaceTCP)
		m.a.routed(m.active, port(w.B.End.IPv4, m.at))
		qp := m.a.queuePair(m.active)
		rig.Check(t, m.active.Connect(nil))
		m.passive = m.b.request(m.service).ID
		return qp
	}
	fails := func(qp *verbs.QP) {
		t.Helper()
		if qp.State() != verbs.QPStateErr {
			t.Errorf("the queue pair is in %v", qp.State())
		}
	}
	qp := request()
	rig.Check(t, m.passive.Reject(nil))
	m.a.rejected(m.active, 28, "")
	fails(qp)
	qp = request()
	rig.Check(t, m.passive.Accept(anyParam()))
	rig.To(t, qp, verbs.QPStateErr)
	event := m.a.event(m.active, cm.EventConnectError) // a queue pair in ERR cannot change to RTR
	rig.Refused(t, event.Err(), unix.EINVAL)
	m.b.rejected(m.passive, 28, "")
	request()
	qp = m.b.queuePair(m.passive)
	rig.To(t, qp, verbs.QPStateErr)
	rig.Refused(t, m.passive.Accept(&cm.ConnParam{}), unix.EINVAL)
	m.a.rejected(m.active, 28, "")
}

// idUnreliable checks that ids for UC connect UC queue pairs, and reject requests from other types.
func idUnreliable(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service := b.ofType(verbs.QPTypeUC)
	rig.Check(t, service.Bind(port(netip.IPv4Unspecified(), 0)))
	rig.Check(t, service.Listen(0))
	at, err := service.LocalAddr()
	rig.Check(t, err)

	active := a.ofType(verbs.QPTypeUC)
	rig.Refused(t, active.SetMinRNRTimer(1), unix.EINVAL, "UC")
	a.routed(active, port(w.B.End.IPv4, at.Port()))
	from := a.queuePairOf(active)
	rig.Check(t, active.Connect(nil))
	request := b.request(service)
	to := b.queuePairOf(request.ID)
	rig.Check(t, request.ID.Accept(nil))
	a.event(active, cm.EventEstablished)
	b.event(request.ID, cm.EventEstablished)
	for _, qp := range []*verbs.QP{from.QP, to.QP} {
		if _, init, err := qp.Query(); err != nil || init.Type != verbs.QPTypeUC {
			t.Errorf("a queue pair of type %v, %v", init.Type, err)
		}
	}
	to.Recv(5, 0, rig.RegionLen)
	from.Post(from.Request(verbs.WRSend, &to, 5000))
	to.Expect(rig.OK(5))
	from.Expect(rig.OK(1))
	rig.Check(t, active.Disconnect())
	b.event(request.ID, cm.EventDisconnected)
	rig.Check(t, request.ID.Disconnect())
	a.event(active, cm.EventDisconnected)

	a.rejected(a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, at.Port()), ""), 9, "") // requests RC
	for space, kind := range map[cm.PortSpace]verbs.QPType{cm.PortSpaceTCP: verbs.QPTypeUD, cm.PortSpaceUDP: verbs.QPTypeUC} {
		_, err := a.channel.CreateIDOfType(space, kind, nil)
		rig.Refused(t, err, unix.EINVAL)
	}
}
