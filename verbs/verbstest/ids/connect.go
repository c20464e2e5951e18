// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var connectTests = []rig.Test{
	{Name: "ids: a service of datagrams", Run: idService},
	{Name: "ids: a service of its own card", Run: idOwnService},
	{Name: "ids: rejected", Run: idRejected},
	{Name: "ids: no listener", Run: idNoListener},
	{Name: "ids: accept fails", Run: idAcceptFails},
	{Name: "ids: requests whose program goes away", Run: idServiceEnds},
	{Name: "ids: many clients of a service", Run: idManyClients},
	{Name: "ids: disconnect", Run: idDisconnects},
}

// service returns an id that listens on all addresses, and its port.
func (e *idEnd) service() (*cm.ID, uint16) {
	e.Helper()
	return e.serviceIn(cm.PortSpaceUDP)
}

func (e *idEnd) serviceIn(space cm.PortSpace) (*cm.ID, uint16) {
	e.Helper()
	id := e.id(space)
	rig.Check(e, id.Bind(port(netip.IPv6Unspecified(), 0)))
	rig.Check(e, id.Listen(0))
	local, err := id.LocalAddr()
	rig.Check(e, err)
	return id, local.Port()
}

// connect requests the queue pair of a service with a new id of port space UDP.
func (e *idEnd) connect(dest netip.AddrPort, privateData string) *cm.ID {
	e.Helper()
	return e.connectIn(cm.PortSpaceUDP, dest, privateData)
}

// connectIn requests a connection with a new id of port space TCP, or a service's queue pair with one of port space
// UDP.
func (e *idEnd) connectIn(space cm.PortSpace, dest netip.AddrPort, privateData string) *cm.ID {
	e.Helper()
	id := e.id(space)
	e.routed(id, dest)
	if id.PortSpace() == cm.PortSpaceTCP {
		rig.Refused(e, id.Connect(&cm.ConnParam{QPN: otherQPN(), ResponderResources: 17}), unix.EINVAL, "MaxResources")
	}
	rig.Check(e, id.Connect(&cm.ConnParam{PrivateData: []byte(privateData), QPN: otherQPN(), ResponderResources: 2, InitiatorDepth: 3, RetryCount: 7, RNRRetryCount: 6}))
	return id
}

// otherQPN returns a queue pair number that no connection has used yet. The queue pair need not exist.
func otherQPN() verbs.QPN { return verbs.QPN(1<<20 + qpns.Add(1)) }

var qpns atomic.Uint32

// request waits for a connection request to a service. The test's cleanup closes its id if it is open.
func (e *idEnd) request(service *cm.ID) *cm.Event {
	e.Helper()
	event, err := e.channel.Expect(rig.Guard(e), cm.EventConnectRequest)
	rig.Check(e, err)
	if event.Listener != service {
		e.Fatal("a request to another id")
	}
	e.closeAtEnd(event.ID)
	return event
}

func (e *idEnd) queuePair(id *cm.ID) *verbs.QP {
	e.Helper()
	qp, err := id.CreateQP(e.PD, &verbs.QPInitAttr{SendCQ: e.CQ, RecvCQ: e.CQ, Cap: rig.DefaultCap()})
	rig.Check(e, err)
	return qp
}

func saysFirst(data []byte, text string) bool {
	rest, found := bytes.CutPrefix(data, []byte(text))
	return found && len(bytes.Trim(rest, "\x00")) == 0
}

// idService checks that a client receives the number of the service's queue pair, and the service the client's address.
func idService(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service, at := b.service()
	for _, own := range [][2]netip.Addr{{w.A.End.IPv4, w.B.End.IPv4}, {w.A.End.IPv6, w.B.End.IPv6}} {
		client := a.connect(port(own[1], at), "who are you?")
		from := a.queuePair(client)
		request := b.request(service)
		peer, err := request.ID.PeerAddr()
		rig.Check(t, err)
		local, err := request.ID.LocalAddr()
		rig.Check(t, err)
		mine, err := client.LocalAddr()
		rig.Check(t, err)
		if peer != mine || mine.Addr() != own[0] || local != port(own[1], at) || !saysFirst(request.PrivateData, "who are you?") {
			t.Errorf("from %v, is %v, to %v: %q", peer, mine, local, request.PrivateData)
		}
		to := b.queuePair(request.ID)
		rig.Check(t, request.ID.Accept(&cm.ConnParam{PrivateData: []byte("a service")}))
		answer := a.event(client, cm.EventEstablished)
		if answer.QPN != to.Number() || answer.QKey != verbs.UDPQKey || !saysFirst(answer.PrivateData, "a service") || answer.Err() != nil {
			t.Errorf("%+v", answer)
		}
		b.ReceiveOn(to, 0)
		a.toGroupOf(from, answer, 1) // to the peer, with the address and the numbers of the event
		w.B.Expect(rig.OK(0))
		rig.Refused(t, request.ID.Accept(&cm.ConnParam{}), unix.EINVAL, "answered")
		rig.Check(t, client.DestroyQP())
		rig.Check(t, client.Close())
		rig.Check(t, request.ID.DestroyQP())
		rig.Check(t, request.ID.Close())
	}
}

// idOwnService connects to a service of the same card that has its own Q_Key.
func idOwnService(t *testing.T, w *rig.World) {
	e, other := newIDEnd(w.A), newIDEnd(w.A)
	service, at := e.service()
	client := other.connect(port(netip.IPv4Unspecified(), at), "")
	request := e.request(service)
	rig.Check(t, request.ID.Accept(&cm.ConnParam{QPN: w.A.QP.Number(), QKey: 7}))
	if answer := other.event(client, cm.EventEstablished); answer.QPN != w.A.QP.Number() || answer.QKey != 7 || answer.AH.GRH.HopLimit != 64 || answer.AH.GRH.DGID != rig.GID(w.A.End.IPv4) {
		t.Errorf("%+v", answer)
	}
}

func idRejected(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service, at := b.service()
	client := a.connect(port(w.B.End.IPv4, at), "")
	request := b.request(service)
	rig.Check(t, request.ID.Reject([]byte("not you")))
	a.unreachable(client, 2, "not you")
	rig.Refused(t, request.ID.Reject(nil), unix.EINVAL)
	rig.Refused(t, client.Connect(nil), unix.EINVAL) // as in the kernel, an id connects once
}

// unreachable waits for the event that reports that a client's request was rejected.
func (e *idEnd) unreachable(client *cm.ID, status int, says string) {
	e.Helper()
	event := e.event(client, cm.EventUnreachable)
	rig.Refused(e, event.Err(), unix.ECONNREFUSED)
	if event.Status != status || !saysFirst(event.PrivateData, says) {
		e.Errorf("status %d: %q", event.Status, event.PrivateData)
	}
}

// idNoListener checks requests to a port without a listener, and to another address of a listener's port.
func idNoListener(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	_, at := b.service()
	a.unreachable(a.connect(port(w.B.End.IPv4, at+1), ""), 1, "")
	only := b.id(cm.PortSpaceUDP)
	rig.Check(t, only.Bind(port(w.B.End.IPv6, 0)))
	rig.Check(t, only.Listen(1))
	local, err := only.LocalAddr()
	rig.Check(t, err)
	a.unreachable(a.connect(port(w.B.End.IPv4, local.Port()), ""), 2, "")
}

// idAcceptFails checks that a failed Accept rejects the peer and changes the queue pair to ERR.
func idAcceptFails(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service, at := b.service()
	for _, param := range []*cm.ConnParam{nil, {PrivateData: make([]byte, 137)}} {
		client := a.connect(port(w.B.End.IPv4, at), "")
		request := b.request(service)
		qp := b.queuePair(request.ID)
		rig.Refused(t, request.ID.Accept(param), unix.EINVAL)
		a.unreachable(client, 2, "")
		if qp.State() != verbs.QPStateErr {
			t.Errorf("the queue pair is in %v", qp.State())
		}
	}
	client := a.connect(port(w.B.End.IPv4, at), "")
	rig.Refused(t, b.request(service).ID.Accept(&cm.ConnParam{}), unix.EINVAL, "queue pair")
	a.unreachable(client, 2, "")
	id := a.id(cm.PortSpaceUDP)
	a.routed(id, port(w.B.End.IPv4, at))
	rig.Refused(t, id.Connect(&cm.ConnParam{PrivateData: make([]byte, 181)}), unix.EINVAL, "180")
	rig.Check(t, id.Connect(&cm.ConnParam{PrivateData: make([]byte, 180)}))
}

// idServiceEnds checks that the peer is rejected when the service closes the request, the listener or the context.
func idServiceEnds(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service, at := b.service()
	client := a.connect(port(w.B.End.IPv4, at), "")
	rig.Check(t, b.request(service).ID.Close()) // neither accepted nor rejected
	a.unreachable(client, 2, "")
	client = a.connect(port(w.B.End.IPv4, at), "")
	b.awaitReadable()
	rig.Check(t, service.Close()) // the request has not been read
	a.unreachable(client, 2, "")
	service, at = b.service()
	client = a.connect(port(w.B.End.IPv4, at), "")
	b.request(service)
	rig.Check(t, w.B.Ctx.Close())
	a.unreachable(client, 2, "")
}

// awaitReadable waits until the channel's descriptor reports an event.
func (e *idEnd) awaitReadable() {
	e.Helper()
	raw, err := e.channel.SyscallConn()
	rig.Check(e, err)
	rig.Eventually(e, "an event", func() (readable bool) {
		rig.Check(e, raw.Control(func(fd uintptr) {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			readable = err == nil && n == 1
		}))
		return readable
	})
}

// idManyClients checks that each of many clients gets its own answer.
func idManyClients(t *testing.T, w *rig.World) {
	const clients = 100
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service, at := b.service()
	for n := range clients {
		id := a.connect(port(w.B.End.IPv4, at), string(rune('A'+n)))
		id.Context = verbs.QKey(n + 1)
	}
	for range clients {
		request := b.request(service)
		number := []rune(string(bytes.TrimRight(request.PrivateData, "\x00")))[0] - 'A' + 1
		rig.Check(t, request.ID.Accept(&cm.ConnParam{QPN: w.B.QP.Number(), QKey: verbs.QKey(number)}))
		rig.Check(t, request.ID.Close())
	}
	for range clients {
		event, err := a.channel.Expect(rig.Guard(t), cm.EventEstablished)
		rig.Check(t, err)
		if event.QKey != event.ID.Context {
			t.Errorf("client %v has the answer of %v", event.ID.Context, event.QKey)
		}
		rig.Check(t, event.ID.Close())
	}
}

func idDisconnects(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service, at := b.service()
	client := a.connect(port(w.B.End.IPv4, at), "")
	qp := a.queuePair(client)
	rig.Check(t, b.request(service).ID.Accept(&cm.ConnParam{QPN: w.B.QP.Number()}))
	a.event(client, cm.EventEstablished)
	rig.Check(t, client.Disconnect())
	if qp.State() != verbs.QPStateErr {
		t.Errorf("the queue pair is in %v", qp.State())
	}
}
