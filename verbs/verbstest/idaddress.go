package verbstest

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// idPorts: who has a port of which addresses.
func idPorts(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	v4, v6, all4, all6 := w.a.end.IPv4, w.a.end.IPv6, netip.IPv4Unspecified(), netip.IPv6Unspecified()
	bound := func(set func(*cm.ID), to netip.AddrPort) (*cm.ID, error) {
		id := e.id(cm.PortSpaceUDP)
		set(id)
		return id, id.Bind(to)
	}
	plain := func(*cm.ID) {}
	reuse := func(id *cm.ID) { check(t, id.SetReuseAddr(true)) }
	only := func(id *cm.ID) { check(t, id.SetAFOnly(true)) }
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
		check(t, err)
		local, err := first.LocalAddr()
		check(t, err)
		if local.Addr() != row.firstAddr || local.Port() == 0 {
			t.Errorf("bound to %v, is %v", row.firstAddr, local)
		}
		next, err := bound(row.second, port(row.nextAddr, local.Port()))
		if !errors.Is(err, row.want) {
			t.Errorf("%v, then %v: %v, want %v", row.firstAddr, row.nextAddr, err, row.want)
		}
		check(t, first.Close())
		if row.want != nil { // now it is free
			check(t, next.Bind(port(row.nextAddr, local.Port())))
		}
		check(t, next.Close())
	}
	for _, row := range []struct {
		to   netip.AddrPort
		want error
	}{
		{port(w.b.end.IPv4, 0), unix.EADDRNOTAVAIL}, {port(netip.MustParseAddr("127.0.0.1"), 0), unix.EADDRNOTAVAIL}, {port(groupV4, 0), unix.EADDRNOTAVAIL},
		{netip.AddrPort{}, unix.EINVAL}, {port(w.a.end.LinkLocal.WithZone(""), 0), unix.EINVAL}, {port(w.a.end.LinkLocal.WithZone("other7"), 0), unix.EADDRNOTAVAIL},
	} {
		_, err := bound(plain, row.to)
		refused(t, err, row.want)
	}
}

// idResolves: by each kind of address, to a group, to itself.
func idResolves(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	for _, row := range []struct {
		name                 string
		source, dest         netip.Addr
		wantSource, wantDest netip.Addr
	}{
		{"IPv4", netip.Addr{}, w.b.end.IPv4, w.a.end.IPv4, w.b.end.IPv4},
		{"IPv6", netip.Addr{}, w.b.end.IPv6, w.a.end.IPv6, w.b.end.IPv6},
		{"by source", w.a.end.IPv4, w.b.end.IPv4, w.a.end.IPv4, w.b.end.IPv4},
		{"all as source", netip.IPv4Unspecified(), w.b.end.IPv4, w.a.end.IPv4, w.b.end.IPv4},
		{"itself", netip.Addr{}, w.a.end.IPv4, w.a.end.IPv4, w.a.end.IPv4},
		{"anything", netip.Addr{}, netip.IPv4Unspecified(), w.a.end.IPv4, w.a.end.IPv4},
		{"anything by source", w.a.end.IPv6, netip.IPv6Unspecified(), w.a.end.IPv6, w.a.end.IPv6},
		{"a group by source", w.a.end.IPv4, groupV4, w.a.end.IPv4, groupV4},
	} {
		id := e.id(cm.PortSpaceUDP)
		check(t, id.ResolveAddr(netip.AddrPortFrom(row.source, 0), port(row.dest, 7174), resolveTimeout))
		e.event(id, cm.EventAddrResolved)
		local, err := id.LocalAddr()
		check(t, err)
		peer, err := id.PeerAddr()
		check(t, err)
		device, err := id.Device()
		check(t, err)
		if local.Addr() != row.wantSource || local.Port() < 32768 || peer != port(row.wantDest, 7174) || device != w.a.ctx {
			t.Errorf("%s: from %v to %v, on the device: %v", row.name, local, peer, device == w.a.ctx)
		}
		route, err := id.Route()
		check(t, err)
		if !row.wantDest.IsMulticast() {
			ah, err := w.a.pd.CreateAH(guard(t), &route)
			check(t, err)
			check(t, ah.Close())
		}
		check(t, id.Close())
	}
	for _, row := range []struct {
		source, dest netip.Addr
		want         error
	}{
		{w.a.end.IPv4, w.b.end.IPv6, unix.EINVAL}, {netip.Addr{}, netip.Addr{}, unix.EINVAL},
		{w.b.end.IPv4, w.b.end.IPv4, unix.EADDRNOTAVAIL}, {w.a.end.IPv6, netip.MustParseAddr("ff01::1"), unix.EINVAL},
	} {
		id := e.id(cm.PortSpaceUDP)
		refused(t, id.ResolveAddr(netip.AddrPortFrom(row.source, 0), netip.AddrPortFrom(row.dest, 1), resolveTimeout), row.want)
		check(t, id.Close())
	}
}

// idUnreachable: an id whose destination has no route is as it was, and can be used again.
func idUnreachable(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	id := e.id(cm.PortSpaceUDP)
	err := id.ResolveAddr(netip.AddrPort{}, port(w.pair.Unreachable, 1), resolveTimeout)
	if err == nil { // there is a route, and nobody answers
		event := e.event(id, cm.EventAddrError)
		refused(t, event.Err(), unix.EHOSTUNREACH)
	} else {
		refused(t, err, verbs.ErrUnreachable)
	}
	e.resolved(id, port(w.b.end.IPv4, 1))
	check(t, id.Close())
}
