package ids

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// idPorts: who has a port of which addresses.
func idPorts(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	v4, v6, all4, all6 := w.A.End.IPv4, w.A.End.IPv6, netip.IPv4Unspecified(), netip.IPv6Unspecified()
	bound := func(set func(*cm.ID), to netip.AddrPort) (*cm.ID, error) {
		id := e.id(cm.PortSpaceUDP)
		set(id)
		return id, id.Bind(to)
	}
	plain := func(*cm.ID) {}
	reuse := func(id *cm.ID) { rig.Check(t, id.SetReuseAddr(true)) }
	only := func(id *cm.ID) { rig.Check(t, id.SetAFOnly(true)) }
	for _, row := range []struct {
		first, second       func(*cm.ID)
		firstAddr, nextAddr netip.Addr
		want                error
	}{
		{plain, plain, v4, v4, unix.EADDRINUSE}, {plain, plain, v4, v6, nil}, {plain, plain, v4, all4, unix.EADDRNOTAVAIL},
		{plain, plain, all4, v4, unix.EADDRNOTAVAIL}, {plain, plain, all6, v4, unix.EADDRNOTAVAIL}, {plain, plain, all4, all6, unix.EADDRNOTAVAIL},
		{only, only, all4, all6, nil}, {only, plain, all4, all6, unix.EADDRNOTAVAIL}, {only, only, v6, all4, nil},
		{reuse, reuse, v4, v4, nil}, {reuse, reuse, all4, v4, nil}, {reuse, plain, v4, v4, unix.EADDRINUSE}, {plain, reuse, v4, v4, unix.EADDRINUSE},
	} {
		first, err := bound(row.first, port(row.firstAddr, 0))
		rig.Check(t, err)
		local, err := first.LocalAddr()
		rig.Check(t, err)
		if local.Addr() != row.firstAddr || local.Port() == 0 {
			t.Errorf("bound to %v, is %v", row.firstAddr, local)
		}
		next, err := bound(row.second, port(row.nextAddr, local.Port()))
		if !errors.Is(err, row.want) {
			t.Errorf("%v, then %v: %v, want %v", row.firstAddr, row.nextAddr, err, row.want)
		}
		rig.Check(t, first.Close())
		if row.want != nil { // now it is free
			rig.Check(t, next.Bind(port(row.nextAddr, local.Port())))
		}
		rig.Check(t, next.Close())
	}
	for _, row := range []struct {
		to   netip.AddrPort
		want error
	}{
		{port(w.B.End.IPv4, 0), unix.EADDRNOTAVAIL}, {port(netip.MustParseAddr("127.0.0.1"), 0), unix.EADDRNOTAVAIL}, {port(rig.GroupV4, 0), unix.EADDRNOTAVAIL},
		{netip.AddrPort{}, unix.EINVAL}, {port(w.A.End.LinkLocal.WithZone(""), 0), unix.EINVAL}, {port(w.A.End.LinkLocal.WithZone("other7"), 0), unix.EADDRNOTAVAIL},
	} {
		_, err := bound(plain, row.to)
		rig.Refused(t, err, row.want)
	}
}

// idResolves: by each kind of address, to a group, to itself.
func idResolves(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	for _, row := range []struct {
		name                 string
		source, dest         netip.Addr
		wantSource, wantDest netip.Addr
	}{
		{"IPv4", netip.Addr{}, w.B.End.IPv4, w.A.End.IPv4, w.B.End.IPv4},
		{"IPv6", netip.Addr{}, w.B.End.IPv6, w.A.End.IPv6, w.B.End.IPv6},
		{"by source", w.A.End.IPv4, w.B.End.IPv4, w.A.End.IPv4, w.B.End.IPv4},
		{"all as source", netip.IPv4Unspecified(), w.B.End.IPv4, w.A.End.IPv4, w.B.End.IPv4},
		{"itself", netip.Addr{}, w.A.End.IPv4, w.A.End.IPv4, w.A.End.IPv4},
		{"anything", netip.Addr{}, netip.IPv4Unspecified(), w.A.End.IPv4, w.A.End.IPv4},
		{"anything by source", w.A.End.IPv6, netip.IPv6Unspecified(), w.A.End.IPv6, w.A.End.IPv6},
		{"a group by source", w.A.End.IPv4, rig.GroupV4, w.A.End.IPv4, rig.GroupV4},
	} {
		id := e.id(cm.PortSpaceUDP)
		rig.Check(t, id.ResolveAddr(netip.AddrPortFrom(row.source, 0), port(row.dest, 7174), resolveTimeout))
		e.event(id, cm.EventAddrResolved)
		local, err := id.LocalAddr()
		rig.Check(t, err)
		peer, err := id.PeerAddr()
		rig.Check(t, err)
		device, err := id.Device()
		rig.Check(t, err)
		if local.Addr() != row.wantSource || local.Port() < 32768 || peer != port(row.wantDest, 7174) || device != w.A.Ctx {
			t.Errorf("%s: from %v to %v, on the device: %v", row.name, local, peer, device == w.A.Ctx)
		}
		route, err := id.Route()
		rig.Check(t, err)
		if !row.wantDest.IsMulticast() {
			ah, err := w.A.PD.CreateAH(rig.Guard(t), &route)
			rig.Check(t, err)
			rig.Check(t, ah.Close())
		}
		rig.Check(t, id.Close())
	}
	for _, row := range []struct {
		source, dest netip.Addr
		want         error
	}{
		{w.A.End.IPv4, w.B.End.IPv6, unix.EINVAL}, {netip.Addr{}, netip.Addr{}, unix.EINVAL},
		{w.B.End.IPv4, w.B.End.IPv4, unix.EADDRNOTAVAIL}, {w.A.End.IPv6, netip.MustParseAddr("ff01::1"), unix.EINVAL},
	} {
		id := e.id(cm.PortSpaceUDP)
		rig.Refused(t, id.ResolveAddr(netip.AddrPortFrom(row.source, 0), netip.AddrPortFrom(row.dest, 1), resolveTimeout), row.want)
		rig.Check(t, id.Close())
	}
}

// idUnreachable: an id whose destination has no route is as it was, and can be used again.
func idUnreachable(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id := e.id(cm.PortSpaceUDP)
	err := id.ResolveAddr(netip.AddrPort{}, port(w.Pair.Unreachable, 1), resolveTimeout)
	if err == nil { // there is a route, and nobody answers
		event := e.event(id, cm.EventAddrError)
		rig.Refused(t, event.Err(), unix.EHOSTUNREACH)
	} else {
		rig.Refused(t, err, verbs.ErrUnreachable)
	}
	e.resolved(id, port(w.B.End.IPv4, 1))
	rig.Check(t, id.Close())
}
