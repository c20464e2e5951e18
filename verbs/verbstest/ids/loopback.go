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

// idLoopback connects queue pairs over 127.0.0.0/8 and ::1, inside the card.
func idLoopback(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	own := w.A.End.IPv4
	for _, row := range []struct{ service, source, dest, from netip.Addr }{
		{addr("127.0.0.1"), netip.Addr{}, addr("127.0.0.1"), addr("127.0.0.1")},
		{addr("127.7.0.1"), addr("127.8.0.1"), addr("127.7.0.1"), addr("127.8.0.1")},
		{addr("0.0.0.0"), netip.Addr{}, addr("127.0.0.9"), addr("127.0.0.1")},
		{addr("::1"), netip.Addr{}, addr("::1"), addr("::1")},
		{addr("::"), netip.Addr{}, addr("127.0.0.1"), addr("127.0.0.1")},
		{addr("127.0.0.1"), own, addr("127.0.0.1"), own},
		{own, addr("127.0.0.1"), own, addr("127.0.0.1")},
	} {
		service := e.id(cm.PortSpaceTCP)
		rig.Check(t, service.Bind(port(row.service, 0)))
		rig.Check(t, service.Listen(0))
		at, err := service.LocalAddr()
		rig.Check(t, err)
		if at.Addr() != row.service {
			t.Errorf("bound to %v, is %v", row.service, at)
		}
		client := e.id(cm.PortSpaceTCP)
		rig.Check(t, client.ResolveAddr(netip.AddrPortFrom(row.source, 0), port(row.dest, at.Port()), resolveTimeout))
		e.event(client, cm.EventAddrResolved)
		rig.Check(t, client.ResolveRoute())
		e.event(client, cm.EventRouteResolved)
		from := e.queuePairOf(client)
		rig.Check(t, client.Connect(nil))
		request := e.request(service)
		to := e.queuePairOf(request.ID)
		mine, err := client.LocalAddr()
		rig.Check(t, err)
		peer, err := request.ID.PeerAddr()
		rig.Check(t, err)
		local, err := request.ID.LocalAddr()
		rig.Check(t, err)
		if mine.Addr() != row.from || peer != mine || local != port(row.dest, at.Port()) {
			t.Errorf("from %v, is %v; to %v, is %v", mine, peer, row.dest, local)
		}
		if source, dest, err := client.ReadGIDs(); err != nil || source != dest || source.Addr().IsLoopback() || source.IsZero() {
			t.Errorf("GIDs %v and %v, %v", source, dest, err)
		}
		rig.Check(t, request.ID.Accept(nil))
		for range 2 {
			_, err := e.channel.Expect(rig.Guard(t), cm.EventEstablished)
			rig.Check(t, err)
		}
		to.Recv(5, 0, rig.RegionLen)
		from.Post(from.Request(verbs.WRSend, &to, 500))
		e.Expect(rig.OK(5), rig.OK(1))
		for _, id := range []*cm.ID{client, request.ID} {
			rig.Check(t, id.DestroyQP())
			rig.Check(t, id.Close())
		}
		rig.Check(t, service.Close())
	}
}

// idLoopbackRefused checks that other hosts cannot reach loopback addresses, and that these cannot reach other hosts.
func idLoopbackRefused(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	service := b.id(cm.PortSpaceUDP)
	rig.Check(t, service.Bind(port(addr("127.0.0.1"), 0)))
	rig.Check(t, service.Listen(0))
	at, err := service.LocalAddr()
	rig.Check(t, err)
	client := a.connect(port(w.B.End.IPv4, at.Port()), "")
	a.event(client, cm.EventUnreachable)
	client = b.connect(port(w.B.End.IPv4, at.Port()), "") // other addresses of the same host have no listener either
	b.event(client, cm.EventUnreachable)
	for _, row := range []struct{ source, dest netip.Addr }{
		{addr("127.0.0.1"), w.B.End.IPv4}, {addr("127.0.0.1"), addr("::1")}, {w.A.End.IPv6, addr("127.0.0.1")}, {addr("::1"), rig.GroupV6},
	} {
		rig.Refused(t, a.id(cm.PortSpaceUDP).ResolveAddr(netip.AddrPortFrom(row.source, 0), port(row.dest, 1), resolveTimeout), unix.EINVAL)
	}
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }
