// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/internal/inside"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var lifeTests = []rig.Test{
	{Name: "ids: permitted calls by state", Run: idStates},
	{Name: "ids: addresses and ports", Run: idPorts},
	{Name: "ids: options", Run: idOptions},
	{Name: "ids: reuse ends at listen", Run: idReuseEnds},
	{Name: "ids: both IP versions of a port", Run: idBothVersions},
	{Name: "ids: resolving", Run: idResolves},
	{Name: "ids: loopback addresses", Run: idLoopback},
	{Name: "ids: loopback addresses, refused", Run: idLoopbackRefused},
	{Name: "ids: unreachable", Run: idUnreachable},
	{Name: "ids: port spaces", Run: idSpaces},
	{Name: "ids: queue pairs", Run: idQueuePairs},
	{Name: "ids: migration", Run: idMigrates},
	{Name: "ids: closed while it resolves", Run: idClosedWhileResolving},
	{Name: "ids: the end of the context", Run: idContextEnds},
}

// idEnd is a station with an event channel for ids.
type idEnd struct {
	*rig.Station
	channel *cm.EventChannel
}

// resolveTimeout is so long that no resolution of these tests times out.
var resolveTimeout = rig.WaitTimeout

func newIDEnd(s *rig.Station) *idEnd {
	s.Helper()
	channel, err := cm.CreateEventChannel(s.Ctx)
	rig.Check(s, err)
	s.Cleanup(func() { _ = channel.Close() }) // after the cleanups that close the ids
	return &idEnd{s, channel}
}

// id creates an id. The test's cleanup closes it if it is open.
func (e *idEnd) id(space cm.PortSpace) *cm.ID {
	e.Helper()
	id, err := e.channel.CreateID(space, nil)
	rig.Check(e, err)
	e.closeAtEnd(id)
	return id
}

// closeAtEnd closes an id in the test's cleanup, if it is open.
func (e *idEnd) closeAtEnd(id *cm.ID) {
	e.Cleanup(func() {
		if id.QP() != nil {
			_ = id.DestroyQP()
		}
		_ = id.Close()
	})
}

// event waits for the next event and fails unless it has this type and id.
func (e *idEnd) event(id *cm.ID, want cm.EventType) *cm.Event {
	e.Helper()
	event, err := e.channel.Get(rig.Guard(e))
	rig.Check(e, err)
	if event.Type != want || event.ID != id {
		e.Fatalf("%v (status %d) of another id: %v; want %v", event.Type, event.Status, event.ID != id, want)
	}
	return event
}

func port(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }

// resolved resolves an address and waits for the event.
func (e *idEnd) resolved(id *cm.ID, dest netip.AddrPort) {
	e.Helper()
	rig.Check(e, id.ResolveAddr(netip.AddrPort{}, dest, resolveTimeout))
	e.event(id, cm.EventAddrResolved)
}

func (e *idEnd) routed(id *cm.ID, dest netip.AddrPort) {
	e.Helper()
	e.resolved(id, dest)
	rig.Check(e, id.ResolveRoute())
	e.event(id, cm.EventRouteResolved)
}

func idOptions(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id := e.id(cm.PortSpaceUDP)
	rig.Check(t, id.SetServiceType(0x68))
	e.resolved(id, port(w.B.End.IPv4, 7))
	route, err := id.Route()
	rig.Check(t, err)
	if route.GRH.TrafficClass != 0x68 || route.GRH.DGID != rig.GID(w.B.End.IPv4) {
		t.Errorf("route %+v", route)
	}
	p := inside.Get[inside.Access[*verbs.Context, *verbs.PD, *verbs.MR, *verbs.QP, *verbs.CQ]]().Provider(w.A.Ctx)
	channel, err := provider.Do(p, provider.CreateEventChannel, provider.None{})
	rig.Check(t, err)
	defer channel.Events.Close()
	grant, err := provider.Do(p, provider.CreateID, provider.CreateIDRequest{Channel: channel.Channel, PortSpace: cm.PortSpaceUDP})
	rig.Check(t, err)
	for _, r := range []provider.SetIDOptionRequest{
		{ID: grant.ID, Option: 4, Value: 1}, {ID: grant.ID, Option: ib.IDOptionTOS, Value: 256}, {ID: grant.ID, Option: ib.IDOptionReuseAddr, Value: 2},
	} {
		rig.Refused(t, provider.Exec(p, provider.SetIDOption, r), unix.EINVAL)
	}
}

func idSpaces(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	for space, want := range map[cm.PortSpace]error{
		cm.PortSpaceUDP: nil, cm.PortSpaceTCP: nil, 2: unix.EOPNOTSUPP, 0x13F: unix.EOPNOTSUPP, 0: unix.EINVAL, 0x107: unix.EINVAL,
	} {
		id, err := e.channel.CreateID(space, nil)
		if !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", space, err, want)
		}
		if err == nil {
			rig.Check(t, id.Close())
		}
	}
	udp, tcp := e.id(cm.PortSpaceUDP), e.id(cm.PortSpaceTCP)
	rig.Check(t, udp.Bind(port(w.A.End.IPv4, 7174)))
	rig.Check(t, tcp.Bind(port(w.A.End.IPv4, 7174))) // the port is free in another port space
}

// idQueuePairs checks that a queue pair of CreateQP can send and receive without Modify, with the Q_Key of the port
// space.
func idQueuePairs(t *testing.T, w *rig.World) {
	e, peer := newIDEnd(w.A), newIDEnd(w.B)
	id, other := e.id(cm.PortSpaceUDP), peer.id(cm.PortSpaceUDP)
	rig.Check(t, other.Bind(port(w.B.End.IPv4, 0)))
	e.resolved(id, port(w.B.End.IPv4, 1))
	qp, err := id.CreateQP(w.A.PD, &verbs.QPInitAttr{SendCQ: w.A.CQ, RecvCQ: w.A.CQ, Cap: rig.DefaultCap()})
	rig.Check(t, err)
	to, err := other.CreateQP(w.B.PD, &verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: w.B.CQ, Cap: rig.DefaultCap()})
	rig.Check(t, err)
	route, err := id.Route()
	rig.Check(t, err)
	ah, err := w.A.PD.CreateAH(rig.Guard(t), &route)
	rig.Check(t, err)
	w.B.ReceiveOn(to, 0)
	wr := w.A.Send(1, ah, to, w.A.Piece(1, 8))
	wr.RemoteQKey = verbs.UDPQKey
	rig.Check(t, qp.PostSend([]verbs.SendWR{wr}))
	w.A.Expect(rig.OK(1))
	w.B.Expect(rig.OK(0))

	_, err = id.CreateQP(w.A.PD, &verbs.QPInitAttr{SendCQ: w.A.CQ, RecvCQ: w.A.CQ, Cap: rig.DefaultCap()})
	rig.Refused(t, err, unix.EINVAL, "has a queue pair")
	rig.Refused(t, id.Close(), unix.EBUSY)
	if id.QP() != qp {
		t.Error("ID.QP returns a different queue pair")
	}
	rig.Check(t, id.DestroyQP())
	rig.Refused(t, id.DestroyQP(), unix.EINVAL)
	_, err = id.CreateQP(w.B.PD, &verbs.QPInitAttr{SendCQ: w.B.CQ, RecvCQ: w.B.CQ, Cap: rig.DefaultCap()})
	rig.Refused(t, err, unix.EINVAL, "another device")
	_, err = id.CreateQP(w.A.PD, &verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: w.A.CQ, RecvCQ: w.A.CQ, Cap: rig.DefaultCap()})
	rig.Refused(t, err, unix.EINVAL, "port space UDP")
	_, err = id.CreateQP(w.A.PD, nil)
	rig.Refused(t, err, unix.EINVAL)
	rig.Check(t, id.Close())
	rig.Check(t, other.DestroyQP())
	rig.Check(t, other.Close())
}

// idMigrates checks that unread events are migrated too.
func idMigrates(t *testing.T, w *rig.World) {
	e, next, foreign := newIDEnd(w.A), newIDEnd(w.A), newIDEnd(w.B)
	id := e.id(cm.PortSpaceUDP)
	rig.Check(t, id.ResolveAddr(netip.AddrPort{}, port(w.B.End.IPv4, 1), resolveTimeout))
	rig.Check(t, id.Migrate(next.channel))
	next.event(id, cm.EventAddrResolved)
	rig.Check(t, id.ResolveRoute())
	next.event(id, cm.EventRouteResolved)
	rig.Check(t, e.channel.Close())
	rig.Refused(t, next.channel.Close(), unix.EBUSY)
	rig.Refused(t, id.Migrate(foreign.channel), unix.EINVAL, "does not have the id's device")
	rig.Refused(t, id.Migrate(e.channel), unix.EINVAL)
	rig.Refused(t, id.Migrate(nil), unix.EINVAL)
	rig.Check(t, id.Migrate(next.channel))
	rig.Check(t, id.Close())
	rig.Check(t, next.channel.Close())
	_, err := next.channel.Get(rig.Guard(t))
	rig.Refused(t, err, verbs.ErrObjectClosed)
	rig.Refused(t, next.channel.Close(), verbs.ErrObjectClosed)
	_, err = next.channel.CreateID(cm.PortSpaceUDP, nil)
	rig.Refused(t, err, verbs.ErrObjectClosed)
	rig.Refused(t, id.Close(), verbs.ErrObjectClosed)
}

// idClosedWhileResolving checks that closed ids have no events.
func idClosedWhileResolving(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	for range 20 {
		id := e.id(cm.PortSpaceUDP)
		rig.Check(t, id.ResolveAddr(netip.AddrPort{}, port(w.B.End.IPv4, 1), resolveTimeout))
		rig.Check(t, id.Close())
		rig.Refused(t, id.ResolveRoute(), verbs.ErrObjectClosed)
	}
	last := e.id(cm.PortSpaceUDP)
	e.resolved(last, port(w.B.End.IPv4, 1)) // fails on an event of a closed id
	if err := last.ResolveAddr(netip.AddrPort{}, port(w.B.End.IPv4, 1), time.Second); !errors.Is(err, unix.EINVAL) {
		t.Error(err)
	}
}

// idContextEnds checks that closing the context wakes the callers that wait for events.
func idContextEnds(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id := e.id(cm.PortSpaceUDP)
	rig.Check(t, id.Bind(port(w.A.End.IPv4, 0)))
	got := rig.Waiting(rig.Guard(t), t, 2, func(ctx context.Context) error {
		_, err := e.channel.Get(ctx)
		return err
	})
	rig.Check(t, w.A.Ctx.Close())
	for range 2 {
		rig.Refused(t, <-got, verbs.ErrClosed)
	}
	rig.Refused(t, id.ResolveRoute(), verbs.ErrClosed)
	_, err := e.channel.CreateID(cm.PortSpaceUDP, nil)
	rig.Refused(t, err, verbs.ErrClosed)
	rig.Check(t, id.Close())
	rig.Check(t, e.channel.Close())
}
