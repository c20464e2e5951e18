package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// Connections by their messages alone: the queue pairs are numbers.
var idConnectionTests = []test{
	{name: "ids: a connection", run: idConnection},
	{name: "ids: a connection to its own card", run: idOwnConnection},
	{name: "ids: connections rejected", run: idConnectionRejected},
	{name: "ids: connections that nobody takes", run: idConnectionNobody},
	{name: "ids: ends of connections", run: idConnectionEnds},
	{name: "ids: connections whose program goes away", run: idConnectionGoesAway},
	{name: "ids: a connection established by data", run: idConnectionNotified},
	{name: "ids: accepting a connection fails", run: idConnectionAcceptFails},
	{name: "ids: many connections", run: idManyConnections},
}

// meeting is two ends of a connection.
type meeting struct {
	*testing.T
	a, b            *idEnd
	service         *cm.ID // of b, at this port
	at              uint16
	active, passive *cm.ID
}

func newMeeting(t *testing.T, w *world) *meeting {
	m := &meeting{T: t, a: newIDEnd(w.a), b: newIDEnd(w.b)}
	m.service, m.at = m.b.serviceIn(cm.PortSpaceTCP)
	return m
}

// ask has the active end ask, and gives the request.
func (m *meeting) ask(privateData string) *cm.Event {
	m.Helper()
	m.active = m.a.connectIn(cm.PortSpaceTCP, port(m.b.end.IPv4, m.at), privateData)
	asked := m.b.request(m.service)
	m.passive = asked.ID
	return asked
}

// establish makes a connection.
func (m *meeting) establish() {
	m.Helper()
	m.ask("")
	check(m, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	check(m, m.active.Accept(nil))
	m.b.event(m.passive, cm.EventEstablished)
}

// idConnection: both ends learn of the other's queue pair, over IPv4 and IPv6, and of the connection's end.
func idConnection(t *testing.T, w *world) {
	m := newMeeting(t, w)
	for _, own := range [][2]netip.Addr{{w.a.end.IPv4, w.b.end.IPv4}, {w.a.end.IPv6, w.b.end.IPv6}} {
		client := m.a.connectIn(cm.PortSpaceTCP, port(own[1], m.at), "who are you?")
		asked := m.b.request(m.service)
		peer, err := asked.ID.PeerAddr()
		check(t, err)
		mine, err := client.LocalAddr()
		check(t, err)
		if peer != mine || mine.Addr() != own[0] || !saysFirst(asked.PrivateData, "who are you?") {
			t.Errorf("from %v, is %v: %q", peer, mine, asked.PrivateData)
		}
		if asked.ResponderResources != 3 || asked.InitiatorDepth != 2 || asked.RetryCount != 7 || asked.RNRRetryCount != 6 || asked.AH.GRH.DGID != gid(own[0]) {
			t.Errorf("%+v", asked)
		}
		to := otherQPN()
		check(t, asked.ID.Accept(&cm.ConnParam{QPN: to, ResponderResources: 1, InitiatorDepth: 5, RNRRetryCount: 4, PrivateData: []byte("a service")}))
		answer := m.a.event(client, cm.EventConnectResponse)
		if answer.QPN != to || answer.ResponderResources != 2 || answer.InitiatorDepth != 1 || answer.RNRRetryCount != 4 || !saysFirst(answer.PrivateData, "a service") || answer.Err() != nil {
			t.Errorf("%+v", answer)
		}
		check(t, client.Accept(nil))
		m.b.event(asked.ID, cm.EventEstablished)
		check(t, client.Disconnect())
		m.b.event(asked.ID, cm.EventDisconnected)
		check(t, asked.ID.Disconnect())
		m.a.event(client, cm.EventDisconnected)
		m.a.event(client, cm.EventTimewaitExit)
		m.b.event(asked.ID, cm.EventTimewaitExit)
		check(t, client.Close())
		check(t, asked.ID.Close())
	}
}

func idOwnConnection(t *testing.T, w *world) {
	e, other := newIDEnd(w.a), newIDEnd(w.a)
	service, at := e.serviceIn(cm.PortSpaceTCP)
	client := other.connectIn(cm.PortSpaceTCP, port(netip.IPv4Unspecified(), at), "")
	asked := e.request(service)
	check(t, asked.ID.Accept(anyParam()))
	other.event(client, cm.EventConnectResponse)
	check(t, client.Accept(nil))
	e.event(asked.ID, cm.EventEstablished)
	check(t, asked.ID.Disconnect())
	other.event(client, cm.EventDisconnected)
}

// rejected waits for the event of an id that was refused.
func (e *idEnd) rejected(id *cm.ID, reason int, says string) {
	e.Helper()
	event := e.event(id, cm.EventRejected)
	refused(e, event.Err(), unix.ECONNREFUSED)
	if event.Status != reason || !saysFirst(event.PrivateData, says) {
		e.Errorf("reason %d: %q", event.Status, event.PrivateData)
	}
}

// idConnectionRejected: who is asked can refuse, and so can who is accepted.
func idConnectionRejected(t *testing.T, w *world) {
	m := newMeeting(t, w)
	m.ask("")
	refused(t, m.passive.Reject(make([]byte, 149)), unix.EINVAL, "148")
	check(t, m.passive.Reject([]byte("not you")))
	m.a.rejected(m.active, 28, "not you")
	refused(t, m.passive.Reject(nil), unix.EINVAL)
	refused(t, m.active.Connect(anyParam()), unix.EINVAL) // as in the kernel, an id connects once
	m.ask("")
	check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	check(t, m.active.Reject([]byte("not like that")))
	m.b.rejected(m.passive, 28, "not like that")
}

// idConnectionNobody: at another port, at another address of a listener's port, and at a port for datagrams.
func idConnectionNobody(t *testing.T, w *world) {
	m := newMeeting(t, w)
	m.a.rejected(m.a.connectIn(cm.PortSpaceTCP, port(w.b.end.IPv4, m.at+1), ""), 8, "")
	only := m.b.id(cm.PortSpaceTCP)
	check(t, only.Bind(port(w.b.end.IPv6, 0)))
	check(t, only.Listen(1))
	local, err := only.LocalAddr()
	check(t, err)
	m.a.rejected(m.a.connectIn(cm.PortSpaceTCP, port(w.b.end.IPv4, local.Port()), ""), 8, "")
	_, datagrams := m.b.service()
	if datagrams != m.at {
		m.a.rejected(m.a.connectIn(cm.PortSpaceTCP, port(w.b.end.IPv4, datagrams), ""), 8, "")
	}
}

// idConnectionEnds: either end can end it, or both at once; each is told once.
func idConnectionEnds(t *testing.T, w *world) {
	m := newMeeting(t, w)
	m.establish()
	check(t, m.passive.Disconnect())
	m.a.event(m.active, cm.EventDisconnected)
	check(t, m.active.Disconnect())
	check(t, m.active.Disconnect())
	m.b.event(m.passive, cm.EventDisconnected)
	m.a.event(m.active, cm.EventTimewaitExit)
	m.b.event(m.passive, cm.EventTimewaitExit)
	m.establish()
	check(t, m.passive.Disconnect())
	check(t, m.active.Disconnect())
	m.a.event(m.active, cm.EventDisconnected)
	m.b.event(m.passive, cm.EventDisconnected)
	m.a.event(m.active, cm.EventTimewaitExit)
	m.b.event(m.passive, cm.EventTimewaitExit)
}

// idConnectionGoesAway: the peer is told, however the program goes away, and whatever it was about.
func idConnectionGoesAway(t *testing.T, w *world) {
	m := newMeeting(t, w)
	m.ask("")
	check(t, m.passive.Close()) // neither accepted nor rejected
	m.a.rejected(m.active, 28, "")
	m.ask("")
	check(t, m.active.Close()) // before the answer
	m.b.rejected(m.passive, 4, "")
	m.ask("")
	check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	check(t, m.active.Close()) // before it has confirmed
	m.b.rejected(m.passive, 28, "")
	m.establish()
	check(t, m.active.Close())
	m.b.event(m.passive, cm.EventDisconnected)
	m.establish()
	check(t, m.passive.Close())
	m.a.event(m.active, cm.EventDisconnected)
	check(t, m.active.Close()) // which agrees
	client := m.a.connectIn(cm.PortSpaceTCP, port(w.b.end.IPv4, m.at), "")
	m.b.awaitReadable()
	check(t, m.service.Close()) // the request waits
	m.a.rejected(client, 28, "")
	m = newMeeting(t, w)
	m.establish()
	check(t, w.b.ctx.Close())
	m.a.event(m.active, cm.EventDisconnected)
}

// idConnectionNotified: the program says that data came before the RTU.
func idConnectionNotified(t *testing.T, w *world) {
	m := newMeeting(t, w)
	m.ask("")
	refused(t, m.passive.Notify(verbs.EventCommEst), unix.EINVAL)
	check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	check(t, m.passive.Notify(verbs.EventCommEst))
	check(t, m.passive.Notify(verbs.EventCommEst))
	refused(t, m.passive.Notify(verbs.EventQPFatal), unix.EINVAL)
	m.b.event(m.passive, cm.EventEstablished)
	check(t, m.active.Accept(nil))
	check(t, m.active.Disconnect())
	m.b.event(m.passive, cm.EventDisconnected)
}

// idConnectionAcceptFails: the peer is rejected.
func idConnectionAcceptFails(t *testing.T, w *world) {
	m := newMeeting(t, w)
	for _, param := range []*cm.ConnParam{nil, {}, {QPN: 17, PrivateData: make([]byte, 197)}} {
		m.ask("")
		refused(t, m.passive.Accept(param), unix.EINVAL)
		m.a.rejected(m.active, 28, "")
	}
	id := m.a.id(cm.PortSpaceTCP)
	m.a.routed(id, port(w.b.end.IPv4, m.at))
	refused(t, id.Connect(nil), unix.EINVAL, "queue pair")
	refused(t, id.Connect(&cm.ConnParam{QPN: 17, PrivateData: make([]byte, 57)}), unix.EINVAL, "56")
	check(t, id.Connect(&cm.ConnParam{QPN: 17, PrivateData: make([]byte, 56)}))
}

// idManyConnections: each has its own answer.
func idManyConnections(t *testing.T, w *world) {
	const connections = 100
	m := newMeeting(t, w)
	for n := range connections {
		m.a.connectIn(cm.PortSpaceTCP, port(w.b.end.IPv4, m.at), string([]byte{byte(n)})).Context = byte(n)
	}
	for range connections {
		asked := m.b.request(m.service)
		check(t, asked.ID.Accept(&cm.ConnParam{QPN: otherQPN(), PrivateData: asked.PrivateData[:1]}))
	}
	for range connections {
		event, err := m.a.channel.Expect(guard(t), cm.EventConnectResponse)
		check(t, err)
		if event.PrivateData[0] != event.ID.Context {
			t.Errorf("connection %v has the answer of %v", event.ID.Context, event.PrivateData[0])
		}
		check(t, event.ID.Accept(nil))
	}
	for range connections {
		_, err := m.b.channel.Expect(guard(t), cm.EventEstablished)
		check(t, err)
	}
}
