package verbstest

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

var idConnectTests = []test{
	{name: "ids: a service of datagrams", run: idService},
	{name: "ids: a service of its own card", run: idOwnService},
	{name: "ids: rejected", run: idRejected},
	{name: "ids: nobody listens", run: idNobodyListens},
	{name: "ids: accept fails", run: idAcceptFails},
	{name: "ids: requests whose program goes away", run: idGoesAway},
	{name: "ids: many clients of a service", run: idManyClients},
	{name: "ids: disconnect", run: idDisconnects},
}

// service is an id that listens, at a port of all addresses.
func (e *idEnd) service() (*cm.ID, uint16) {
	e.Helper()
	return e.serviceIn(cm.PortSpaceUDP)
}

func (e *idEnd) serviceIn(space cm.PortSpace) (*cm.ID, uint16) {
	e.Helper()
	id := e.id(space)
	check(e, id.Bind(port(netip.IPv6Unspecified(), 0)))
	check(e, id.Listen(0))
	local, err := id.LocalAddr()
	check(e, err)
	return id, local.Port()
}

// connect has an id ask a service.
func (e *idEnd) connect(dest netip.AddrPort, privateData string) *cm.ID {
	e.Helper()
	return e.connectIn(cm.PortSpaceUDP, dest, privateData)
}

// connectIn has an id ask for a connection, in port space TCP, or for a queue pair.
func (e *idEnd) connectIn(space cm.PortSpace, dest netip.AddrPort, privateData string) *cm.ID {
	e.Helper()
	id := e.id(space)
	e.routed(id, dest)
	if id.PortSpace() == cm.PortSpaceTCP {
		refused(e, id.Connect(&cm.ConnParam{QPN: otherQPN(), ResponderResources: 17}), unix.EINVAL, "MaxResources")
	}
	check(e, id.Connect(&cm.ConnParam{PrivateData: []byte(privateData), QPN: otherQPN(), ResponderResources: 2, InitiatorDepth: 3, RetryCount: 7, RNRRetryCount: 6}))
	return id
}

// otherQPN is the number of a queue pair that no connection has had yet. There need not be one.
func otherQPN() verbs.QPN { return verbs.QPN(1<<20 + qpns.Add(1)) }

var qpns atomic.Uint32

// request waits for a request to a service. Its id is closed at the end, if it is open.
func (e *idEnd) request(service *cm.ID) *cm.Event {
	e.Helper()
	event, err := e.channel.Expect(guard(e), cm.EventConnectRequest)
	check(e, err)
	if event.Listener != service {
		e.Fatal("a request to another id")
	}
	e.closeAtEnd(event.ID)
	return event
}

func (e *idEnd) queuePair(id *cm.ID) *verbs.QP {
	e.Helper()
	qp, err := id.CreateQP(e.pd, &verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq, Cap: defaultCap()})
	check(e, err)
	return qp
}

func saysFirst(data []byte, text string) bool {
	rest, found := bytes.CutPrefix(data, []byte(text))
	return found && len(bytes.Trim(rest, "\x00")) == 0
}

// idService: a client learns of a service's queue pair, and the service of its client.
func idService(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	service, at := b.service()
	for _, own := range [][2]netip.Addr{{w.a.end.IPv4, w.b.end.IPv4}, {w.a.end.IPv6, w.b.end.IPv6}} {
		client := a.connect(port(own[1], at), "who are you?")
		from := a.queuePair(client)
		asked := b.request(service)
		peer, err := asked.ID.PeerAddr()
		check(t, err)
		local, err := asked.ID.LocalAddr()
		check(t, err)
		mine, err := client.LocalAddr()
		check(t, err)
		if peer != mine || mine.Addr() != own[0] || local != port(own[1], at) || !saysFirst(asked.PrivateData, "who are you?") {
			t.Errorf("from %v, is %v, to %v: %q", peer, mine, local, asked.PrivateData)
		}
		to := b.queuePair(asked.ID)
		check(t, asked.ID.Accept(&cm.ConnParam{PrivateData: []byte("a service")}))
		answer := a.event(client, cm.EventEstablished)
		if answer.QPN != to.Number() || answer.QKey != verbs.UDPQKey || !saysFirst(answer.PrivateData, "a service") || answer.Err() != nil {
			t.Errorf("%+v", answer)
		}
		b.receiveOn(to, 0)
		a.toGroupOf(from, answer, 1) // to the peer, by the event
		w.b.expect(ok(0))
		refused(t, asked.ID.Accept(&cm.ConnParam{}), unix.EINVAL, "answered")
		check(t, client.DestroyQP())
		check(t, client.Close())
		check(t, asked.ID.DestroyQP())
		check(t, asked.ID.Close())
	}
}

// idOwnService: a service of the same card, and a Q_Key of its own.
func idOwnService(t *testing.T, w *world) {
	e, other := newIDEnd(w.a), newIDEnd(w.a)
	service, at := e.service()
	client := other.connect(port(netip.IPv4Unspecified(), at), "")
	asked := e.request(service)
	check(t, asked.ID.Accept(&cm.ConnParam{QPN: w.a.qp.Number(), QKey: 7}))
	if answer := other.event(client, cm.EventEstablished); answer.QPN != w.a.qp.Number() || answer.QKey != 7 || answer.AH.GRH.DGID != gid(w.a.end.IPv4) {
		t.Errorf("%+v", answer)
	}
}

func idRejected(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	service, at := b.service()
	client := a.connect(port(w.b.end.IPv4, at), "")
	asked := b.request(service)
	check(t, asked.ID.Reject([]byte("not you")))
	a.unreachable(client, 2, "not you")
	refused(t, asked.ID.Reject(nil), unix.EINVAL)
	refused(t, client.Connect(nil), unix.EINVAL) // as in the kernel, an id connects once
}

// unreachable waits for the event of a client that was refused.
func (e *idEnd) unreachable(client *cm.ID, status int, says string) {
	e.Helper()
	event := e.event(client, cm.EventUnreachable)
	refused(e, event.Err(), unix.ECONNREFUSED)
	if event.Status != status || !saysFirst(event.PrivateData, says) {
		e.Errorf("status %d: %q", event.Status, event.PrivateData)
	}
}

// idNobodyListens: at another port, and at another address of a listener's port.
func idNobodyListens(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	_, at := b.service()
	a.unreachable(a.connect(port(w.b.end.IPv4, at+1), ""), 1, "")
	only := b.id(cm.PortSpaceUDP)
	check(t, only.Bind(port(w.b.end.IPv6, 0)))
	check(t, only.Listen(1))
	local, err := only.LocalAddr()
	check(t, err)
	a.unreachable(a.connect(port(w.b.end.IPv4, local.Port()), ""), 2, "")
}

// idAcceptFails: the peer is rejected, and the queue pair fails.
func idAcceptFails(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	service, at := b.service()
	for _, param := range []*cm.ConnParam{nil, {PrivateData: make([]byte, 137)}} {
		client := a.connect(port(w.b.end.IPv4, at), "")
		asked := b.request(service)
		qp := b.queuePair(asked.ID)
		refused(t, asked.ID.Accept(param), unix.EINVAL)
		a.unreachable(client, 2, "")
		if qp.State() != verbs.QPStateErr {
			t.Errorf("the queue pair is in %v", qp.State())
		}
	}
	client := a.connect(port(w.b.end.IPv4, at), "")
	refused(t, b.request(service).ID.Accept(&cm.ConnParam{}), unix.EINVAL, "queue pair")
	a.unreachable(client, 2, "")
	id := a.id(cm.PortSpaceUDP)
	a.routed(id, port(w.b.end.IPv4, at))
	refused(t, id.Connect(&cm.ConnParam{PrivateData: make([]byte, 181)}), unix.EINVAL, "180")
	check(t, id.Connect(&cm.ConnParam{PrivateData: make([]byte, 180)}))
}

// idGoesAway: the peer is told, however the program goes away.
func idGoesAway(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	service, at := b.service()
	client := a.connect(port(w.b.end.IPv4, at), "")
	check(t, b.request(service).ID.Close()) // neither accepted nor rejected
	a.unreachable(client, 2, "")
	client = a.connect(port(w.b.end.IPv4, at), "")
	b.awaitReadable()
	check(t, service.Close()) // the request waits
	a.unreachable(client, 2, "")
	service, at = b.service()
	client = a.connect(port(w.b.end.IPv4, at), "")
	b.request(service)
	check(t, w.b.ctx.Close())
	a.unreachable(client, 2, "")
}

// awaitReadable waits until the channel's descriptor says that there is an event.
func (e *idEnd) awaitReadable() {
	e.Helper()
	raw, err := e.channel.SyscallConn()
	check(e, err)
	eventually(e, "an event", func() (readable bool) {
		check(e, raw.Control(func(fd uintptr) {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			readable = err == nil && n == 1
		}))
		return readable
	})
}

// idManyClients: all are answered, each with its own.
func idManyClients(t *testing.T, w *world) {
	const clients = 100
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	service, at := b.service()
	for n := range clients {
		id := a.connect(port(w.b.end.IPv4, at), string(rune('A'+n)))
		id.Context = verbs.QKey(n + 1)
	}
	for range clients {
		asked := b.request(service)
		number := []rune(string(bytes.TrimRight(asked.PrivateData, "\x00")))[0] - 'A' + 1
		check(t, asked.ID.Accept(&cm.ConnParam{QPN: w.b.qp.Number(), QKey: verbs.QKey(number)}))
		check(t, asked.ID.Close())
	}
	for range clients {
		event, err := a.channel.Expect(guard(t), cm.EventEstablished)
		check(t, err)
		if event.QKey != event.ID.Context {
			t.Errorf("client %v has the answer of %v", event.ID.Context, event.QKey)
		}
		check(t, event.ID.Close())
	}
}

func idDisconnects(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	service, at := b.service()
	client := a.connect(port(w.b.end.IPv4, at), "")
	qp := a.queuePair(client)
	check(t, b.request(service).ID.Accept(&cm.ConnParam{QPN: w.b.qp.Number()}))
	a.event(client, cm.EventEstablished)
	check(t, client.Disconnect())
	if qp.State() != verbs.QPStateErr {
		t.Errorf("the queue pair is in %v", qp.State())
	}
}
