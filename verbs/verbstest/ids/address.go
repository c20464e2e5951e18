// SPDX-License-Identifier: Apache-2.0

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

// idPorts tests the conflicts of ports and addresses.
func idPorts(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	v4, v6, all4, all6 := w.A.End.IPv4, w.A.End.IPv6, netip.IPv4Unspecified(), netip.IPv6Unspecified()
	device, err := w.A.Ctx.QueryDevice()
	rig.Check(t, err)
	zone := device.Name
	bound := func(set func(*cm.ID), to netip.AddrPort) (*cm.ID, error) {
		id := e.id(cm.PortSpaceUDP)
		set(id)
		return id, id.Bind(to)
	}
	plain := func(*cm.ID) {}
	reuse := func(id *cm.ID) { rig.Check(t, id.SetReuseAddr(true)) }
	only := func(id *cm.ID) { rig.Check(t, id.SetAFOnly(true)) }
	both := func(id *cm.ID) { rig.Check(t, id.SetAFOnly(false)) }
	for _, row := range []struct {
		first, second       func(*cm.ID)
		firstAddr, nextAddr netip.Addr
		want                error
	}{
		{plain, plain, v4, v4, unix.EADDRINUSE}, {plain, plain, v4, v6, nil}, {plain, plain, v4, all4, unix.EADDRNOTAVAIL},
		{plain, plain, all4, v4, unix.EADDRNOTAVAIL}, {plain, plain, all6, v4, unix.EADDRNOTAVAIL}, {plain, plain, all4, all6, unix.EADDRNOTAVAIL},
		{only, only, all4, all6, nil}, {only, plain, all4, all6, unix.EADDRNOTAVAIL}, {only, only, v6, all4, nil},
		{plain, only, all4, all6, nil}, {only, plain, all6, all4, nil}, {plain, only, v4, all6, nil}, {both, only, all4, all6, unix.EADDRNOTAVAIL}, // 0.0.0.0 is IPv4 only
		{reuse, reuse, v4, v4, nil}, {reuse, reuse, all4, v4, nil}, {reuse, plain, v4, v4, unix.EADDRINUSE}, {plain, reuse, v4, v4, unix.EADDRINUSE},
		{plain, plain, v6, v6.WithZone(zone), unix.EADDRINUSE}, {plain, plain, addr("::1"), addr("::1").WithZone(zone), unix.EADDRINUSE}, // the zone is ignored here
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
		if row.want != nil { // the port is free after the first id was closed
			rig.Check(t, next.Bind(port(row.nextAddr, local.Port())))
		}
		rig.Check(t, next.Close())
	}
	for _, row := range []struct {
		to   netip.AddrPort
		want error
	}{
		{port(w.B.End.IPv4, 0), unix.EADDRNOTAVAIL}, {port(rig.GroupV4, 0), unix.EADDRNOTAVAIL},
		{netip.AddrPort{}, unix.EINVAL}, {port(w.A.End.LinkLocal.WithZone(""), 0), unix.EINVAL}, {port(w.A.End.LinkLocal.WithZone("other7"), 0), unix.EADDRNOTAVAIL},
	} {
		_, err := bound(plain, row.to)
		rig.Refused(t, err, row.want)
	}
}

// idResolves resolves each kind of address: of the peer, of a group, and the id's own.
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

// idUnreachable checks that a failed resolution leaves the id unchanged, so that it can be used again.
func idUnreachable(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id := e.id(cm.PortSpaceUDP)
	err := id.ResolveAddr(netip.AddrPort{}, port(w.Pair.Unreachable, 1), resolveTimeout)
	if err == nil { // there is a route, but no host responds
		event := e.event(id, cm.EventAddrError)
		rig.Refused(t, event.Err(), unix.EHOSTUNREACH)
	} else {
		rig.Refused(t, err, verbs.ErrUnreachable)
	}
	e.resolved(id, port(w.B.End.IPv4, 1))
	rig.Check(t, id.Close())
}

// idReuseEnds checks that several ids can be bound to an address with SetReuseAddr, and that Listen requires the
// address to have one id.
func idReuseEnds(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	bound := func(to netip.AddrPort) (*cm.ID, error) {
		id := e.id(cm.PortSpaceTCP)
		rig.Check(t, id.SetReuseAddr(true))
		return id, id.Bind(to)
	}
	first, err := bound(port(w.A.End.IPv4, 0))
	rig.Check(t, err)
	at, err := first.LocalAddr()
	rig.Check(t, err)
	second, err := bound(at)
	rig.Check(t, err)
	rig.Refused(t, first.Listen(1), unix.EADDRINUSE)
	rig.Check(t, second.Close())
	rig.Check(t, first.Listen(1))
	_, err = bound(at)
	rig.Refused(t, err, unix.EADDRINUSE)
	_, err = bound(port(netip.IPv4Unspecified(), at.Port()))
	rig.Refused(t, err, unix.EADDRNOTAVAIL)
	rig.Check(t, first.Close())
	_, err = bound(at)
	rig.Check(t, err)
}

// idBothVersions checks that two ids can listen on a port, one for each IP version.
func idBothVersions(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	four, six := b.id(cm.PortSpaceUDP), b.id(cm.PortSpaceUDP)
	rig.Check(t, four.Bind(port(netip.IPv4Unspecified(), 0)))
	at, err := four.LocalAddr()
	rig.Check(t, err)
	rig.Check(t, six.SetAFOnly(true))
	rig.Check(t, six.Bind(port(netip.IPv6Unspecified(), at.Port())))
	rig.Check(t, four.Listen(0))
	rig.Check(t, six.Listen(0))
	for _, row := range []struct {
		to      netip.Addr
		service *cm.ID
	}{{w.B.End.IPv4, four}, {w.B.End.IPv6, six}} {
		client := a.connect(port(row.to, at.Port()), "")
		rig.Check(t, b.request(row.service).ID.Reject(nil))
		a.event(client, cm.EventUnreachable)
	}
	rig.Check(t, four.Close())
	client := a.connect(port(w.B.End.IPv4, at.Port()), "")
	a.event(client, cm.EventUnreachable) // the listener is closed
}
