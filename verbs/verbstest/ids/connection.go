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

// Connections by their messages alone: the queue pairs are numbers.
var connectionTests = []rig.Test{
	{Name: "ids: a connection", Run: idConnection},
	{Name: "ids: a connection to its own card", Run: idOwnConnection},
	{Name: "ids: connections rejected", Run: idConnectionRejected},
	{Name: "ids: connections that are not accepted", Run: idConnectionNobody},
	{Name: "ids: ends of connections", Run: idConnectionEnds},
	{Name: "ids: connections whose program goes away", Run: idConnectionGoesAway},
	{Name: "ids: a connection established by data", Run: idConnectionNotified},
	{Name: "ids: accepting a connection fails", Run: idConnectionAcceptFails},
	{Name: "ids: many connections", Run: idManyConnections},
}

// meeting is two ends of a connection.
type meeting struct {
	*testing.T
	a, b            *idEnd
	service         *cm.ID // of b, at this port
	at              uint16
	active, passive *cm.ID
}

func newMeeting(t *testing.T, w *rig.World) *meeting {
	m := &meeting{T: t, a: newIDEnd(w.A), b: newIDEnd(w.B)}
	m.service, m.at = m.b.serviceIn(cm.PortSpaceTCP)
	return m
}

// ask requests a connection from the active end, and returns the request.
func (m *meeting) ask(privateData string) *cm.Event {
	m.Helper()
	m.active = m.a.connectIn(cm.PortSpaceTCP, port(m.b.End.IPv4, m.at), privateData)
	asked := m.b.request(m.service)
	m.passive = asked.ID
	return asked
}

// establish makes a connection.
func (m *meeting) establish() {
	m.Helper()
	m.ask("")
	rig.Check(m, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(m, m.active.Accept(nil))
	m.b.event(m.passive, cm.EventEstablished)
}

// idConnection: both ends receive the other's queue pair, over IPv4 and IPv6, and are notified of the connection's end.
func idConnection(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	for _, own := range [][2]netip.Addr{{w.A.End.IPv4, w.B.End.IPv4}, {w.A.End.IPv6, w.B.End.IPv6}} {
		client := m.a.connectIn(cm.PortSpaceTCP, port(own[1], m.at), "who are you?")
		asked := m.b.request(m.service)
		peer, err := asked.ID.PeerAddr()
		rig.Check(t, err)
		mine, err := client.LocalAddr()
		rig.Check(t, err)
		if peer != mine || mine.Addr() != own[0] || !saysFirst(asked.PrivateData, "who are you?") {
			t.Errorf("from %v, is %v: %q", peer, mine, asked.PrivateData)
		}
		if asked.ResponderResources != 3 || asked.InitiatorDepth != 2 || asked.RetryCount != 7 || asked.RNRRetryCount != 6 || asked.AH.GRH.HopLimit != 64 || asked.AH.GRH.DGID != rig.GID(own[0]) {
			t.Errorf("%+v", asked)
		}
		to := otherQPN()
		rig.Check(t, asked.ID.Accept(&cm.ConnParam{QPN: to, ResponderResources: 1, InitiatorDepth: 5, RNRRetryCount: 4, PrivateData: []byte("a service")}))
		answer := m.a.event(client, cm.EventConnectResponse)
		if answer.QPN != to || answer.ResponderResources != 2 || answer.InitiatorDepth != 1 || answer.RNRRetryCount != 4 || !saysFirst(answer.PrivateData, "a service") || answer.Err() != nil {
			t.Errorf("%+v", answer)
		}
		rig.Check(t, client.Accept(nil))
		m.b.event(asked.ID, cm.EventEstablished)
		rig.Check(t, client.Disconnect())
		m.b.event(asked.ID, cm.EventDisconnected)
		rig.Check(t, asked.ID.Disconnect())
		m.a.event(client, cm.EventDisconnected)
		m.a.event(client, cm.EventTimewaitExit)
		m.b.event(asked.ID, cm.EventTimewaitExit)
		rig.Check(t, client.Close())
		rig.Check(t, asked.ID.Close())
	}
}

func idOwnConnection(t *testing.T, w *rig.World) {
	e, other := newIDEnd(w.A), newIDEnd(w.A)
	service, at := e.serviceIn(cm.PortSpaceTCP)
	client := other.connectIn(cm.PortSpaceTCP, port(netip.IPv4Unspecified(), at), "")
	asked := e.request(service)
	rig.Check(t, asked.ID.Accept(anyParam()))
	other.event(client, cm.EventConnectResponse)
	rig.Check(t, client.Accept(nil))
	e.event(asked.ID, cm.EventEstablished)
	rig.Check(t, asked.ID.Disconnect())
	other.event(client, cm.EventDisconnected)
}

// rejected waits for the event of an id that was refused.
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

// idConnectionRejected: both the passive and the active end can reject.
func idConnectionRejected(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.ask("")
	rig.Refused(t, m.passive.Reject(make([]byte, 149)), unix.EINVAL, "148")
	rig.Check(t, m.passive.Reject([]byte("not you")))
	m.a.rejected(m.active, int(cm.RejectConsumer), "not you")
	rig.Refused(t, m.passive.Reject(nil), unix.EINVAL)
	rig.Refused(t, m.active.Connect(anyParam()), unix.EINVAL) // as in the kernel, an id connects once
	m.ask("")
	rig.Check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(t, m.active.Reject([]byte("not like that")))
	m.b.rejected(m.passive, 28, "not like that")
}

// idConnectionNobody: at another port, at another address of a listener's port, and at a port for datagrams.
func idConnectionNobody(t *testing.T, w *rig.World) {
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

// idConnectionEnds: either end can end it, or both at once; each is told once.
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

// idConnectionGoesAway: the peer is told, however the program goes away, and whatever it was about.
func idConnectionGoesAway(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.ask("")
	rig.Check(t, m.passive.Close()) // neither accepted nor rejected
	m.a.rejected(m.active, 28, "")
	m.ask("")
	rig.Check(t, m.active.Close()) // before the answer
	m.b.rejected(m.passive, 4, "")
	m.ask("")
	rig.Check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(t, m.active.Close()) // before it has confirmed
	m.b.rejected(m.passive, 28, "")
	m.establish()
	rig.Check(t, m.active.Close())
	m.b.event(m.passive, cm.EventDisconnected)
	m.establish()
	rig.Check(t, m.passive.Close())
	m.a.event(m.active, cm.EventDisconnected)
	rig.Check(t, m.active.Close()) // which agrees
	client := m.a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, m.at), "")
	m.b.awaitReadable()
	rig.Check(t, m.service.Close()) // the request waits
	m.a.rejected(client, 28, "")
	m = newMeeting(t, w)
	m.establish()
	rig.Check(t, w.B.Ctx.Close())
	m.a.event(m.active, cm.EventDisconnected)
}

// idConnectionNotified: the program reports that data arrived before the RTU.
func idConnectionNotified(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.ask("")
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

// idConnectionAcceptFails: the peer is rejected.
func idConnectionAcceptFails(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	for _, param := range []*cm.ConnParam{nil, {}, {QPN: 17, PrivateData: make([]byte, 197)}} {
		m.ask("")
		rig.Refused(t, m.passive.Accept(param), unix.EINVAL)
		m.a.rejected(m.active, 28, "")
	}
	id := m.a.id(cm.PortSpaceTCP)
	m.a.routed(id, port(w.B.End.IPv4, m.at))
	rig.Refused(t, id.Connect(nil), unix.EINVAL, "queue pair")
	rig.Refused(t, id.Connect(&cm.ConnParam{QPN: 17, PrivateData: make([]byte, 57)}), unix.EINVAL, "56")
	rig.Check(t, id.Connect(&cm.ConnParam{QPN: 17, PrivateData: make([]byte, 56)}))
}

// idManyConnections: each has its own answer.
func idManyConnections(t *testing.T, w *rig.World) {
	const connections = 100
	m := newMeeting(t, w)
	for n := range connections {
		m.a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, m.at), string([]byte{byte(n)})).Context = byte(n)
	}
	for range connections {
		asked := m.b.request(m.service)
		rig.Check(t, asked.ID.Accept(&cm.ConnParam{QPN: otherQPN(), PrivateData: asked.PrivateData[:1]}))
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
