package verbstest

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

var idTests = []test{
	{name: "ids: what is allowed when", run: idStates},
	{name: "ids: addresses and ports", run: idPorts},
	{name: "ids: options", run: idOptions},
	{name: "ids: resolving", run: idResolves},
	{name: "ids: nobody is there", run: idUnreachable},
	{name: "ids: port spaces", run: idSpaces},
	{name: "ids: queue pairs", run: idQueuePairs},
	{name: "ids: migration", run: idMigrates},
	{name: "ids: closed while it resolves", run: idClosedWhileResolving},
	{name: "ids: the end of the context", run: idContextEnds},
}

// idEnd is a station with ids.
type idEnd struct {
	*station
	channel *cm.EventChannel
}

// resolveTimeout is long: nothing here is to time out.
const resolveTimeout = waitTimeout

func newIDEnd(s *station) *idEnd {
	s.Helper()
	channel, err := cm.CreateEventChannel(s.ctx)
	check(s, err)
	s.Cleanup(func() { _ = channel.Close() }) // the ids are closed before
	return &idEnd{s, channel}
}

// id makes an id, which is closed at the end if it is open.
func (e *idEnd) id(space cm.PortSpace) *cm.ID {
	e.Helper()
	id, err := e.channel.CreateID(space, nil)
	check(e, err)
	e.closeAtEnd(id)
	return id
}

// closeAtEnd closes an id, if the test has not.
func (e *idEnd) closeAtEnd(id *cm.ID) {
	e.Cleanup(func() {
		if id.QP() != nil {
			_ = id.DestroyQP()
		}
		_ = id.Close()
	})
}

// event waits for an event of an id.
func (e *idEnd) event(id *cm.ID, want cm.EventType) *cm.Event {
	e.Helper()
	event, err := e.channel.Get(guard(e))
	check(e, err)
	if event.Type != want || event.ID != id {
		e.Fatalf("%v (status %d) of another id: %v; want %v", event.Type, event.Status, event.ID != id, want)
	}
	return event
}

func port(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }

// resolved has an address resolved.
func (e *idEnd) resolved(id *cm.ID, dest netip.AddrPort) {
	e.Helper()
	check(e, id.ResolveAddr(netip.AddrPort{}, dest, resolveTimeout))
	e.event(id, cm.EventAddrResolved)
}

func (e *idEnd) routed(id *cm.ID, dest netip.AddrPort) {
	e.Helper()
	e.resolved(id, dest)
	check(e, id.ResolveRoute())
	e.event(id, cm.EventRouteResolved)
}

func idOptions(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	id := e.id(cm.PortSpaceUDP)
	check(t, id.SetServiceType(0x68))
	e.resolved(id, port(w.b.end.IPv4, 7))
	route, err := id.Route()
	check(t, err)
	if route.GRH.TrafficClass != 0x68 || route.GRH.DGID != gid(w.b.end.IPv4) {
		t.Errorf("route %+v", route)
	}
	p := w.a.ctx.Provider()
	channel, err := p.CreateEventChannel()
	check(t, err)
	defer channel.Events.Close()
	grant, err := p.CreateID(provider.CreateIDRequest{Channel: channel.Channel, PortSpace: cm.PortSpaceUDP})
	check(t, err)
	for _, r := range []provider.SetIDOptionRequest{
		{ID: grant.ID, Option: 3, Value: 1}, {ID: grant.ID, Option: verbs.IDOptionTOS, Value: 256}, {ID: grant.ID, Option: verbs.IDOptionReuseAddr, Value: 2},
	} {
		refused(t, p.SetIDOption(r), unix.EINVAL)
	}
}

func idSpaces(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	for space, want := range map[cm.PortSpace]error{
		cm.PortSpaceUDP: nil, cm.PortSpaceTCP: nil, 2: unix.EOPNOTSUPP, 0x13F: unix.EOPNOTSUPP, 0: unix.EINVAL, 0x107: unix.EINVAL,
	} {
		id, err := e.channel.CreateID(space, nil)
		if !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", space, err, want)
		}
		if err == nil {
			check(t, id.Close())
		}
	}
	udp, tcp := e.id(cm.PortSpaceUDP), e.id(cm.PortSpaceTCP)
	check(t, udp.Bind(port(w.a.end.IPv4, 7174)))
	check(t, tcp.Bind(port(w.a.end.IPv4, 7174))) // another space
}

// idQueuePairs: one that CreateQP makes can send and receive at once, with the Q_Key of the port space.
func idQueuePairs(t *testing.T, w *world) {
	e, peer := newIDEnd(w.a), newIDEnd(w.b)
	id, other := e.id(cm.PortSpaceUDP), peer.id(cm.PortSpaceUDP)
	check(t, other.Bind(port(w.b.end.IPv4, 0)))
	e.resolved(id, port(w.b.end.IPv4, 1))
	qp, err := id.CreateQP(w.a.pd, &verbs.QPInitAttr{SendCQ: w.a.cq, RecvCQ: w.a.cq, Cap: defaultCap()})
	check(t, err)
	to, err := other.CreateQP(w.b.pd, &verbs.QPInitAttr{SendCQ: w.b.cq, RecvCQ: w.b.cq, Cap: defaultCap()})
	check(t, err)
	route, err := id.Route()
	check(t, err)
	ah, err := w.a.pd.CreateAH(guard(t), &route)
	check(t, err)
	w.b.receiveOn(to, 0)
	wr := w.a.send(1, ah, to, w.a.piece(1, 8))
	wr.RemoteQKey = verbs.UDPQKey
	check(t, qp.PostSend([]verbs.SendWR{wr}))
	w.a.expect(ok(1))
	w.b.expect(ok(0))

	_, err = id.CreateQP(w.a.pd, &verbs.QPInitAttr{SendCQ: w.a.cq, RecvCQ: w.a.cq, Cap: defaultCap()})
	refused(t, err, unix.EINVAL, "has a queue pair")
	refused(t, id.Close(), unix.EBUSY)
	if id.QP() != qp {
		t.Error("the id has another queue pair")
	}
	check(t, id.DestroyQP())
	refused(t, id.DestroyQP(), unix.EINVAL)
	_, err = id.CreateQP(w.b.pd, &verbs.QPInitAttr{SendCQ: w.b.cq, RecvCQ: w.b.cq, Cap: defaultCap()})
	refused(t, err, unix.EINVAL, "another device")
	_, err = id.CreateQP(w.a.pd, &verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: w.a.cq, RecvCQ: w.a.cq, Cap: defaultCap()})
	refused(t, err, unix.EINVAL, "port space UDP")
	_, err = id.CreateQP(w.a.pd, nil)
	refused(t, err, unix.EINVAL)
	check(t, id.Close())
	check(t, other.DestroyQP())
	check(t, other.Close())
}

// idMigrates: events that nobody has got move along.
func idMigrates(t *testing.T, w *world) {
	e, next, foreign := newIDEnd(w.a), newIDEnd(w.a), newIDEnd(w.b)
	id := e.id(cm.PortSpaceUDP)
	check(t, id.ResolveAddr(netip.AddrPort{}, port(w.b.end.IPv4, 1), resolveTimeout))
	check(t, id.Migrate(next.channel))
	next.event(id, cm.EventAddrResolved)
	check(t, id.ResolveRoute())
	next.event(id, cm.EventRouteResolved)
	check(t, e.channel.Close())
	refused(t, next.channel.Close(), unix.EBUSY)
	refused(t, id.Migrate(foreign.channel), unix.EINVAL, "not of the id's device")
	refused(t, id.Migrate(e.channel), unix.EINVAL)
	refused(t, id.Migrate(nil), unix.EINVAL)
	check(t, id.Migrate(next.channel))
	check(t, id.Close())
	check(t, next.channel.Close())
	_, err := next.channel.Get(guard(t))
	refused(t, err, verbs.ErrObjectClosed)
	refused(t, next.channel.Close(), verbs.ErrObjectClosed)
	_, err = next.channel.CreateID(cm.PortSpaceUDP, nil)
	refused(t, err, verbs.ErrObjectClosed)
	refused(t, id.Close(), verbs.ErrObjectClosed)
}

// idClosedWhileResolving: no event comes of an id that is closed.
func idClosedWhileResolving(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	for range 20 {
		id := e.id(cm.PortSpaceUDP)
		check(t, id.ResolveAddr(netip.AddrPort{}, port(w.b.end.IPv4, 1), resolveTimeout))
		check(t, id.Close())
		refused(t, id.ResolveRoute(), verbs.ErrObjectClosed)
	}
	last := e.id(cm.PortSpaceUDP)
	e.resolved(last, port(w.b.end.IPv4, 1)) // no event of another came before
	if err := last.ResolveAddr(netip.AddrPort{}, port(w.b.end.IPv4, 1), time.Second); !errors.Is(err, unix.EINVAL) {
		t.Error(err)
	}
}

// idContextEnds: who waits for events is woken.
func idContextEnds(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	id := e.id(cm.PortSpaceUDP)
	check(t, id.Bind(port(w.a.end.IPv4, 0)))
	got := waiting(guard(t), t, 2, func(ctx context.Context) error {
		_, err := e.channel.Get(ctx)
		return err
	})
	check(t, w.a.ctx.Close())
	for range 2 {
		refused(t, <-got, verbs.ErrClosed)
	}
	refused(t, id.ResolveRoute(), verbs.ErrClosed)
	_, err := e.channel.CreateID(cm.PortSpaceUDP, nil)
	refused(t, err, verbs.ErrClosed)
	check(t, id.Close())
	check(t, e.channel.Close())
}
