package verbstest

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// Connections of ids with queue pairs.
var idConnectedTests = []test{
	{name: "ids: queue pairs of a connection", run: idConnectedQPs},
	{name: "ids: attributes of a connection's queue pairs", run: idConnectedAttributes},
	{name: "ids: queue pairs of the program's own", run: idConnectedOwnQPs},
	{name: "ids: queue pairs of connections that fail", run: idConnectedFails},
}

// queuePairOf makes an id's queue pair, with a region that its peer may use.
func (e *idEnd) queuePairOf(id *cm.ID) peer {
	e.Helper()
	mr, err := e.pd.AllocMR(regionLen, verbs.AccessLocalWrite|allAccess)
	check(e, err)
	return peer{e.station, e.queuePair(id), mr}
}

// meetAt connects two ids that have queue pairs.
func (m *meeting) meetAt(address netip.Addr) *peers {
	m.Helper()
	m.active = m.a.id(cm.PortSpaceTCP)
	m.a.routed(m.active, port(address, m.at))
	a := m.a.queuePairOf(m.active)
	check(m, m.active.Connect(&cm.ConnParam{ResponderResources: cm.MaxResources, InitiatorDepth: 4, RetryCount: 6, RNRRetryCount: 5}))
	asked := m.b.request(m.service)
	m.passive = asked.ID
	b := m.b.queuePairOf(m.passive)
	check(m, m.passive.Accept(&cm.ConnParam{ResponderResources: cm.MaxResources, InitiatorDepth: 2, RNRRetryCount: 7}))
	m.a.event(m.active, cm.EventEstablished)
	m.b.event(m.passive, cm.EventEstablished)
	return &peers{a, b}
}

// idConnectedQPs: the queue pairs of both ends can do all that connected ones can, until one end disconnects.
func idConnectedQPs(t *testing.T, w *world) {
	m := newMeeting(t, w)
	for _, address := range []netip.Addr{w.b.end.IPv4, w.b.end.IPv6} {
		p := m.meetAt(address)
		for _, way := range [][2]*peer{{&p.a, &p.b}, {&p.b, &p.a}} {
			from, to := way[0], way[1]
			want := pattern(5000, 3)
			copy(from.mr.Bytes(), want)
			to.recv(5, 0, regionLen)
			from.post(from.request(verbs.WRSend, to, 5000))
			to.expect(ok(5))
			from.expect(ok(1))
			clear(from.mr.Bytes())
			from.post(from.request(verbs.WRRDMARead, to, 5000))
			from.expect(ok(1))
			if !bytes.Equal(from.mr.Bytes()[:5000], want) {
				t.Errorf("to %v: other bytes came than were sent", address)
			}
		}
		p.b.recv(6, 0, 1)
		check(t, m.active.Disconnect())
		m.b.event(m.passive, cm.EventDisconnected)
		check(t, m.passive.Disconnect())
		p.b.expect(outcome{id: 6, status: verbs.WCWRFlushErr})
		m.a.event(m.active, cm.EventDisconnected)
		for _, id := range []*cm.ID{m.active, m.passive} {
			if id.QP().State() != verbs.QPStateErr {
				t.Errorf("%v after the end", id.QP().State())
			}
			check(t, id.DestroyQP())
			check(t, id.Close())
		}
	}
}

// idConnectedAttributes: both queue pairs are set to what the ends have agreed on.
func idConnectedAttributes(t *testing.T, w *world) {
	m := newMeeting(t, w)
	p := m.meetAt(w.b.end.IPv4)
	a, _, err := p.a.qp.Query()
	check(t, err)
	b, _, err := p.b.qp.Query()
	check(t, err)
	if a.SQPSN != b.RQPSN || b.SQPSN != a.RQPSN || a.DestQPN != p.b.qp.Number() || b.DestQPN != p.a.qp.Number() || a.PathMTU != b.PathMTU || a.PathMTU == 0 {
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

// idConnectedOwnQPs: a program makes its queue pairs itself, by the attributes that the ids give.
func idConnectedOwnQPs(t *testing.T, w *world) {
	m := newMeeting(t, w)
	a, b := w.a.peer(verbs.QPTypeRC), w.b.peer(verbs.QPTypeRC)
	m.active = m.a.id(cm.PortSpaceTCP)
	m.a.routed(m.active, port(w.b.end.IPv4, m.at))
	check(t, m.active.Connect(&cm.ConnParam{QPN: a.qp.Number(), InitiatorDepth: 1, RetryCount: 7, RNRRetryCount: 7}))
	m.passive = m.b.request(m.service).ID
	bring := func(id *cm.ID, qp *verbs.QP) {
		t.Helper()
		for _, state := range []verbs.QPState{verbs.QPStateInit, verbs.QPStateRTR, verbs.QPStateRTS} {
			attr, mask, err := id.InitQPAttr(state)
			check(t, err)
			check(t, qp.Modify(&attr, mask))
		}
	}
	bring(m.passive, b.qp)
	check(t, m.passive.Accept(&cm.ConnParam{QPN: b.qp.Number(), ResponderResources: 1, RNRRetryCount: 7}))
	m.a.event(m.active, cm.EventConnectResponse)
	bring(m.active, a.qp)
	check(t, m.active.Accept(nil))
	m.b.event(m.passive, cm.EventEstablished)
	b.recv(5, 0, 100)
	a.post(a.request(verbs.WRSend, &b, 100))
	b.expect(ok(5))
	a.expect(ok(1))
}

// idConnectedFails: the queue pair of an end that fails, or that is rejected, is in ERR, and the other end is told.
func idConnectedFails(t *testing.T, w *world) {
	m := newMeeting(t, w)
	ask := func() *verbs.QP {
		m.active = m.a.id(cm.PortSpaceTCP)
		m.a.routed(m.active, port(w.b.end.IPv4, m.at))
		qp := m.a.queuePair(m.active)
		check(t, m.active.Connect(nil))
		m.passive = m.b.request(m.service).ID
		return qp
	}
	fails := func(qp *verbs.QP) {
		t.Helper()
		if qp.State() != verbs.QPStateErr {
			t.Errorf("the queue pair is in %v", qp.State())
		}
	}
	qp := ask()
	check(t, m.passive.Reject(nil))
	m.a.rejected(m.active, 28, "")
	fails(qp)
	qp = ask()
	check(t, m.passive.Accept(anyParam()))
	to(t, qp, verbs.QPStateErr)
	event := m.a.event(m.active, cm.EventConnectError) // ERR leads to no other state
	refused(t, event.Err(), unix.EINVAL)
	m.b.rejected(m.passive, 28, "")
	ask()
	qp = m.b.queuePair(m.passive)
	to(t, qp, verbs.QPStateErr)
	refused(t, m.passive.Accept(&cm.ConnParam{}), unix.EINVAL)
	m.a.rejected(m.active, 28, "")
}
