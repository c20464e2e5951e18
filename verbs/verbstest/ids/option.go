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

var optionTests = []rig.Test{
	{Name: "ids: options by name", Run: idOptionsByName},
	{Name: "ids: the ACK timeout", Run: idAckTimeout},
	{Name: "ids: the path that the program gives", Run: idPath},
	{Name: "ids: addresses of AF_IB", Run: idSockaddrIB},
	{Name: "ids: establish, and ECE", Run: idEstablish},
	{Name: "ids: GIDs and service ids", Run: idGIDs},
}

// idOptionsByName checks that the four options of RDMA_OPTION_ID have librdmacm's numbers and the effect of the
// methods.
func idOptionsByName(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id, tcp := e.id(cm.PortSpaceUDP), e.id(cm.PortSpaceTCP)
	rig.Check(t, id.SetOption(0, 0, 0x68))
	rig.Check(t, id.SetOption(0, 1, 7)) // any int except 0 means true
	rig.Check(t, id.SetOption(0, 2, 1))
	rig.Check(t, tcp.SetOption(0, 3, 31))
	rig.Refused(t, id.SetOption(0, 0, 256), unix.EINVAL)
	rig.Refused(t, id.SetOption(0, 3, 1), unix.EINVAL, "UD")
	rig.Refused(t, tcp.SetAckTimeout(32), unix.EINVAL)
	rig.Refused(t, id.SetOption(0, 4, 1), unix.ENOSYS)
	rig.Refused(t, id.SetOption(1, 1, 1), unix.ENOSYS)
	e.resolved(id, port(w.B.End.IPv4, 7))
	route, err := id.Route()
	rig.Check(t, err)
	if route.GRH.TrafficClass != 0x68 {
		t.Errorf("route %+v", route)
	}
	rig.Refused(t, id.SetOption(0, 1, 1), unix.EINVAL) // the id is bound
}

// idAckTimeout checks that both queue pairs have the ACK timeout that the active end has set, unless the passive end
// sets its own.
func idAckTimeout(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	for _, own := range []uint8{0, 9} {
		m.active = m.a.id(cm.PortSpaceTCP)
		rig.Check(t, m.active.SetAckTimeout(11))
		m.a.routed(m.active, port(w.B.End.IPv4, m.at))
		rig.Check(t, m.active.Connect(&cm.ConnParam{QPN: otherQPN()}))
		m.passive = m.b.request(m.service).ID
		want := uint8(11)
		if own > 0 {
			rig.Check(t, m.passive.SetAckTimeout(own))
			want = own
		}
		rig.Check(t, m.passive.Accept(anyParam()))
		m.a.event(m.active, cm.EventConnectResponse)
		for id, want := range map[*cm.ID]uint8{m.active: 11, m.passive: want} {
			if attr, mask, err := id.InitQPAttr(verbs.QPStateRTS); err != nil || attr.Timeout != want || mask&verbs.QPAttrTimeout == 0 {
				t.Errorf("timeout %d, want %d: %v", attr.Timeout, want, err)
			}
		}
	}
}

// idPath checks that both ends use a path that the program sets instead of the host's.
func idPath(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.active = m.a.id(cm.PortSpaceTCP)
	m.a.resolved(m.active, port(w.B.End.IPv6, m.at))
	path, err := m.active.Route()
	rig.Check(t, err)
	for _, other := range []func(*verbs.AHAttr){
		func(a *verbs.AHAttr) { a.GRH.DGID = rig.GID(w.A.End.IPv6) }, func(a *verbs.AHAttr) { a.GRH.SGIDIndex = 99 },
		func(a *verbs.AHAttr) { a.GRH.FlowLabel = 1 << 20 }, func(a *verbs.AHAttr) { a.SL = 8 },
	} {
		bad := path
		other(&bad)
		rig.Refused(t, m.active.SetIBPath(bad), unix.EINVAL)
	}
	path.SL, path.GRH.TrafficClass, path.GRH.FlowLabel, path.GRH.HopLimit = 3, 0x20, 0x12345, 9
	rig.Check(t, m.active.SetIBPath(path))
	m.a.event(m.active, cm.EventRouteResolved)
	rig.Refused(t, m.active.SetIBPath(path), unix.EINVAL)
	if route, err := m.active.Route(); err != nil || route != path {
		t.Errorf("%+v, %v", route, err)
	}
	rig.Check(t, m.active.Connect(anyParam()))
	m.passive = m.b.request(m.service).ID
	rig.Check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	for _, id := range []*cm.ID{m.active, m.passive} {
		attr, _, err := id.InitQPAttr(verbs.QPStateRTR)
		rig.Check(t, err)
		if g := attr.AHAttr.GRH; g.TrafficClass != 0x20 || g.FlowLabel != 0x12345 || g.HopLimit != 9 || id == m.active && attr.AHAttr.SL != 3 {
			t.Errorf("%+v", attr.AHAttr)
		}
	}
}

// idSockaddrIB checks that ids bind to, resolve and return GIDs and service ids.
func idSockaddrIB(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	for _, own := range [][2]netip.Addr{{w.A.End.IPv4, w.B.End.IPv4}, {w.A.End.IPv6, w.B.End.IPv6}} {
		service := b.id(cm.PortSpaceUDP)
		rig.Check(t, service.BindIB(cm.SockaddrIB{Addr: rig.GID(own[1]), ServiceID: 0x0111_0000}))
		rig.Check(t, service.Listen(0))
		at, err := service.LocalAddrIB()
		rig.Check(t, err)
		if at.Addr != rig.GID(own[1]) || at.ServiceID>>16 != 0x0111 || uint16(at.ServiceID) == 0 || at.PKey != 0xFFFF {
			t.Errorf("bound to %+v", at)
		}
		client := a.id(cm.PortSpaceUDP)
		rig.Check(t, client.ResolveAddrIB(cm.SockaddrIB{}, at, resolveTimeout))
		a.event(client, cm.EventAddrResolved)
		if peer, err := client.PeerAddrIB(); err != nil || peer != at {
			t.Errorf("to %+v, is %+v, %v", at, peer, err)
		}
		rig.Check(t, client.ResolveRoute())
		a.event(client, cm.EventRouteResolved)
		rig.Check(t, client.Connect(nil))
		rig.Check(t, b.request(service).ID.Reject(nil))
		a.event(client, cm.EventUnreachable)
		rig.Check(t, service.Close())
	}
	id := b.id(cm.PortSpaceTCP)
	rig.Refused(t, id.BindIB(cm.SockaddrIB{Addr: rig.GID(w.B.End.IPv4), ServiceID: 0x0111_0000}), unix.EPROTONOSUPPORT)
	rig.Refused(t, id.BindIB(cm.SockaddrIB{Addr: rig.GID(w.B.End.IPv4), ServiceID: 0x0106_0000, PKey: 7}), unix.EINVAL)
	link := rig.GID(w.B.End.LinkLocal.WithZone(""))
	rig.Check(t, id.BindIB(cm.SockaddrIB{Addr: link, ServiceID: 0x0106_0000}))
	if local, err := id.LocalAddrIB(); err != nil || local.Addr != link {
		t.Errorf("bound to %+v, %v", local, err)
	}
}

// idEstablish checks Establish, by which the active end sends the RTU for a queue pair that the program created itself.
func idEstablish(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.request("")
	rig.Refused(t, m.active.SetLocalECE(cm.ECE{VendorID: 1}), unix.EOPNOTSUPP)
	rig.Refused(t, m.active.Establish(), unix.EINVAL) // not accepted
	rig.Check(t, m.passive.Accept(anyParam()))
	m.a.event(m.active, cm.EventConnectResponse)
	rig.Check(t, m.active.Establish())
	m.b.event(m.passive, cm.EventEstablished)
	if ece, err := m.active.RemoteECE(); err != nil || ece != (cm.ECE{}) {
		t.Errorf("%+v, %v", ece, err)
	}
	m.meetAt(w.B.End.IPv4)
	rig.Refused(t, m.active.Establish(), unix.EINVAL, "has a queue pair")
}

// idGIDs checks that the GIDs are those of the id's addresses, and that a service id consists of the port space and the
// port.
func idGIDs(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id := e.id(cm.PortSpaceTCP)
	if source, dest, err := id.ReadGIDs(); err != nil || !source.IsZero() || !dest.IsZero() {
		t.Errorf("not bound, from %v to %v: %v", source, dest, err)
	}
	e.resolved(id, port(w.B.End.IPv6, 7))
	if source, dest, err := id.ReadGIDs(); err != nil || source != rig.GID(w.A.End.IPv6) || dest != rig.GID(w.B.End.IPv6) {
		t.Errorf("from %v to %v: %v", source, dest, err)
	}
	if service := id.ServiceID(0x1234); service != 0x0106_1234 {
		t.Errorf("service id 0x%x", service)
	}
	if devices := e.channel.Devices(); len(devices) != 1 || devices[0] != w.A.Ctx {
		t.Errorf("%d devices", len(devices))
	}
}
