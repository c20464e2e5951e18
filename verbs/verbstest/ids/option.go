package ids

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var optionTests = []rig.Test{
	{Name: "ids: options by name", Run: idOptionsByName},
	{Name: "ids: the ACK timeout", Run: idAckTimeout},
	{Name: "ids: establish, and ECE", Run: idEstablish},
	{Name: "ids: GIDs and service ids", Run: idGIDs},
}

// idOptionsByName: RDMA_OPTION_ID's four have librdmacm's numbers and do what the calls do.
func idOptionsByName(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id, tcp := e.id(cm.PortSpaceUDP), e.id(cm.PortSpaceTCP)
	rig.Check(t, id.SetOption(0, 0, 0x68))
	rig.Check(t, id.SetOption(0, 1, 7)) // as an int that is not 0
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
	rig.Refused(t, id.SetOption(0, 1, 1), unix.EINVAL) // it is bound
}

// idAckTimeout: both ends' queue pairs have the one that the active end has set, unless the other sets its own.
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

// idEstablish: the active end confirms for a queue pair of the program's own.
func idEstablish(t *testing.T, w *rig.World) {
	m := newMeeting(t, w)
	m.ask("")
	rig.Refused(t, m.active.SetLocalECE(cm.ECE{VendorID: 1}), unix.EOPNOTSUPP)
	rig.Refused(t, m.active.Establish(), unix.EINVAL) // nobody has accepted
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

// idGIDs: they are the addresses'; a service id has the port space and the port.
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
