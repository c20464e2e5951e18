// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// Tests of the messages of connections. The queue pair numbers belong to no queue pairs.
var connectionTests = []rig.Test{
	{Name: "ids: a connection", Run: idConnection},
	{Name: "ids: a connection to its own card", Run: idOwnConnection},
	{Name: "ids: connections rejected", Run: idConnectionRejected},
	{Name: "ids: connections that are not accepted", Run: idConnectionNoListener},
	{Name: "ids: ends of connections", Run: idConnectionEnds},
	{Name: "ids: connections whose program goes away", Run: idConnectionClosed},
	{Name: "ids: a connection established by data", Run: idConnectionNotified},
	{Name: "ids: accepting a connection fails", Run: idConnectionAcceptFails},
	{Name: "ids: many connections", Run: idManyConnections},
}

// meeting contains the two ends of a connection.
type meeting struct {
	*testing.T
	a, b            *idEnd
	service         *cm.ID // the listening id of b, on port at
	at              uint16
	active, passive *cm.ID
}

func newMeeting(t *testing.T, w *rig.World) *meeting {
	m := &meeting{T: t, a: newIDEnd(w.A), b: newIDEnd(w.B)}
	m.service, m.at = m.b.serviceIn(cm.PortSpaceTCP)
	return m
}

// request requests a connection from the active end, and returns the event of the passive end.
func (m *meeting) request(privateData string) *cm.Event {
	m.Helper()
	m.active = m.a.connectIn(cm.PortSpaceTCP, port(m.b.End.IPv4, m.at), privateData)
	request := m.b.request(m.service)
	m.passive = request.ID
	return request
}

// establish establishes a connection.
func (m *meeting) establish() {
	m.Helper()
	m.request("")
	rig.Check(m, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(m, m.active.Accept(nil))
	m.b.event(m.passive, cm.EventEstablished)
}

// idConnection checks over IPv4 and IPv6 that each end receives the other's queue pair number, and is notified when the
// connection ends.
func idConnection(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	for _, own := range [][2]netip.Addr{{w.A.End.IPv4, w.B.End.IPv4}, {w.A.End.IPv6, w.B.End.IPv6}} {
		client := m.a.connectIn(cm.PortSpaceTCP, port(own[1], m.at), "who are you?")
		request := m.b.request(m.service)
		peer, err := request.ID.PeerAddr()
		rig.Check(t, err)
		mine, err := client.LocalAddr()
		rig.Check(t, err)
		if peer != mine || mine.Addr() != own[0] || !saysFirst(request.PrivateData, "who are you?") {
			t.Errorf("from %v, is %v: %q", peer, mine, request.PrivateData)
		}
		if request.ResponderResources != 3 || request.InitiatorDepth != 2 || request.RetryCount != 7 || request.RNRRetryCount != 6 || request.AH.GRH.HopLimit != 64 || request.AH.GRH.DGID != rig.GID(own[0]) {
			t.Errorf("%+v", request)
		}
		to := otherQPN()
		rig.Check(t, request.ID.Accept(&cm.ConnParam{QPN: to, ResponderResources: 1, InitiatorDepth: 5, RNRRetryCount: 4, PrivateData: []byte("a service")}))
		answer := m.a.event(client, cm.EventConnectResponse)
		if answer.QPN != to || answer.ResponderResources != 2 || answer.InitiatorDepth != 1 || answer.RNRRetryCount != 4 || !saysFirst(answer.PrivateData, "a service") || answer.Err() != nil {
			t.Errorf("%+v", answer)
		}
		rig.Check(t, client.Accept(nil))
		m.b.event(request.ID, cm.EventEstablished)
		rig.Check(t, client.Disconnect())
		m.b.event(request.ID, cm.EventDisconnected)
		rig.Check(t, request.ID.Disconnect())
		m.a.event(client, cm.EventDisconnected)
		m.a.event(client, cm.EventTimewaitExit)
		m.b.event(request.ID, cm.EventTimewaitExit)
		rig.Check(t, client.Close())
		rig.Check(t, request.ID.Close())
	}
}

func idOwnConnection(t *testing.T, w *rig.World) {
	e, other := newIDEnd(w.A), newIDEnd(w.A)
	service, at := e.serviceIn(cm.PortSpaceTCP)
	client := other.connectIn(cm.PortSpaceTCP, port(netip.IPv4Unspecified(), at), "")
	request := e.request(service)
	rig.Check(t, request.ID.Accept(anyParam()))
	other.event(client, cm.EventConnectResponse)
	rig.Check(t, client.Accept(nil))
	e.event(request.ID, cm.EventEstablished)
	rig.Check(t, request.ID.Disconnect())
	other.event(client, cm.EventDisconnected)
}

// rejected waits for the event that reports that an id's request was rejected.
func (e *idEnd) rejected(id *cm.ID, reason int, says string) {
	e.Helper()
	event := e.event(id, cm.EventRejected)
	rig.Refused(e, event.Err(), unix.ECONNREFUSED)
	if event.Status != reason || !saysFirst(event.PrivateData, says) {
		e.Errorf("reason %d: %q", event.Status, event.PrivateData)
	}
	data := event.ConsumerRejectData()
	if theirs := reason == int(cm.RejectConsumer); event.IsConsumerReject() != theirs || theirs && !saysFirst(data, says) || !theirs && data != nil {
		e.Errorf("reason %d, of the program: %v: %q", reason, !theirs, data)
	}
}

// idConnectionRejected checks that the passive and the active end can reject.
func idConnectionRejected(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.request("")
	rig.Refused(t, m.passive.Reject(make([]byte, 149)), unix.EINVAL, "148")
	rig.Check(t, m.passive.Reject([]byte("not you")))
	m.a.rejected(m.active, int(cm.RejectConsumer), "not you")
	rig.Refused(t, m.passive.Reject(nil), unix.EINVAL)
	rig.Refused(t, m.active.Connect(anyParam()), unix.EINVAL) // as in the kernel, an id connects once
	m.request("")
	rig.Check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(t, m.active.Reject([]byte("not like that")))
	m.b.rejected(m.passive, 28, "not like that")
}

// idConnectionNoListener checks requests to a port without a listener, to another address of a listener's port, and to
// a listener of port space UDP.
func idConnectionNoListener(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.a.rejected(m.a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, m.at+1), ""), 8, "")
	only := m.b.id(cm.PortSpaceTCP)
	rig.Check(t, only.Bind(port(w.B.End.IPv6, 0)))
	rig.Check(t, only.Listen(1))
	local, err := only.LocalAddr()
	rig.Check(t, err)
	m.a.rejected(m.a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, local.Port()), ""), 8, "")
	_, datagrams := m.b.service()
	if datagrams != m.at {
		m.a.rejected(m.a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, datagrams), ""), 8, "")
	}
}

// idConnectionEnds disconnects from either end and from both at once. Each end must be notified exactly once.
func idConnectionEnds(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.establish()
	rig.Check(t, m.passive.Disconnect())
	m.a.event(m.active, cm.EventDisconnected)
	rig.Check(t, m.active.Disconnect())
	rig.Check(t, m.active.Disconnect())
	m.b.event(m.passive, cm.EventDisconnected)
	m.a.event(m.active, cm.EventTimewaitExit)
	m.b.event(m.passive, cm.EventTimewaitExit)
	m.establish()
	rig.Check(t, m.passive.Disconnect())
	rig.Check(t, m.active.Disconnect())
	m.a.event(m.active, cm.EventDisconnected)
	m.b.event(m.passive, cm.EventDisconnected)
	m.a.event(m.active, cm.EventTimewaitExit)
	m.b.event(m.passive, cm.EventTimewaitExit)
}

// idConnectionClosed checks that the peer is notified when an id, the listener or the context is closed, in each state
// of the connection.
func idConnectionClosed(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.request("")
	rig.Check(t, m.passive.Close()) // neither accepted nor rejected
	m.a.rejected(m.active, 28, "")
	m.request("")
	rig.Check(t, m.active.Close()) // before the REP
	m.b.rejected(m.passive, 4, "")
	m.request("")
	rig.Check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(t, m.active.Close()) // before its RTU
	m.b.rejected(m.passive, 28, "")
	m.establish()
	rig.Check(t, m.active.Close())
	m.b.event(m.passive, cm.EventDisconnected)
	m.establish()
	rig.Check(t, m.passive.Close())
	m.a.event(m.active, cm.EventDisconnected)
	rig.Check(t, m.active.Close()) // after the event
	client := m.a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, m.at), "")
	m.b.awaitReadable()
	rig.Check(t, m.service.Close()) // the request has not been read
	m.a.rejected(client, 28, "")
	m = newMeeting(t, w)
	m.establish()
	rig.Check(t, w.B.Ctx.Close())
	m.a.event(m.active, cm.EventDisconnected)
}

// idConnectionNotified establishes a connection by Notify: the program reports data that arrived before the RTU.
func idConnectionNotified(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.request("")
	rig.Refused(t, m.passive.Notify(verbs.EventCommEst), unix.EINVAL)
	rig.Check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(t, m.passive.Notify(verbs.EventCommEst))
	rig.Check(t, m.passive.Notify(verbs.EventCommEst))
	rig.Refused(t, m.passive.Notify(verbs.EventQPFatal), unix.EINVAL)
	m.b.event(m.passive, cm.EventEstablished)
	rig.Check(t, m.active.Accept(nil))
	rig.Check(t, m.active.Disconnect())
	m.b.event(m.passive, cm.EventDisconnected)
}

// idConnectionAcceptFails checks that a failed Accept rejects the peer.
func idConnectionAcceptFails(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	for _, param := range []*cm.ConnParam{nil, {}, {QPN: 17, PrivateData: make([]byte, 197)}} {
		m.request("")
		rig.Refused(t, m.passive.Accept(param), unix.EINVAL)
		m.a.rejected(m.active, 28, "")
	}
	id := m.a.id(cm.PortSpaceTCP)
	m.a.routed(id, port(w.B.End.IPv4, m.at))
	rig.Refused(t, id.Connect(nil), unix.EINVAL, "queue pair")
	rig.Refused(t, id.Connect(&cm.ConnParam{QPN: 17, PrivateData: make([]byte, 57)}), unix.EINVAL, "56")
	rig.Check(t, id.Connect(&cm.ConnParam{QPN: 17, PrivateData: make([]byte, 56)}))
}

// idManyConnections checks that each of many connections gets its own answer.
func idManyConnections(t *testing.T, w *rig.World) {
	const connections = 100
	m := newMeeting(t, w)
	for n := range connections {
		m.a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, m.at), string([]byte{byte(n)})).Context = byte(n)
	}
	for range connections {
		request := m.b.request(m.service)
		rig.Check(t, request.ID.Accept(&cm.ConnParam{QPN: otherQPN(), PrivateData: request.PrivateData[:1]}))
	}
	for range connections {
		event, err := m.a.channel.Expect(rig.Guard(t), cm.EventConnectResponse)
		rig.Check(t, err)
		if event.PrivateData[0] != event.ID.Context {
			t.Errorf("connection %v has the answer of %v", event.ID.Context, event.PrivateData[0])
		}
		rig.Check(t, event.ID.Accept(nil))
	}
	for range connections {
		_, err := m.b.channel.Expect(rig.Guard(t), cm.EventEstablished)
		rig.Check(t, err)
	}
}
