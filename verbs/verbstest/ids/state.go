// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// idState is a state of an id, and the function that brings an id into it.
type idState struct {
	name  string
	enter func(r *idRig, id *cm.ID) *cm.ID // returns a different id if the state requires one
}

// idRig contains the end under test and its peer.
type idRig struct {
	e       *idEnd
	peer    *rig.Station
	nowhere netip.AddrPort // an address of the peer without a listener
}

// idStateRows contains the states in the order of the letters in idCalls. Those from "accepted by the peer" on exist in
// port space TCP only.
var idStateRows = []idState{
	{"idle", func(_ *idRig, id *cm.ID) *cm.ID { return id }},
	{"bound to all", func(r *idRig, id *cm.ID) *cm.ID { return r.bound(id, netip.IPv4Unspecified()) }},
	{"bound", func(r *idRig, id *cm.ID) *cm.ID { return r.bound(id, r.e.End.IPv4) }},
	{"address resolved", func(r *idRig, id *cm.ID) *cm.ID { r.e.resolved(id, r.nowhere); return id }},
	{"route resolved", func(r *idRig, id *cm.ID) *cm.ID { r.e.routed(id, r.nowhere); return id }},
	{"listening", func(r *idRig, id *cm.ID) *cm.ID { rig.Check(r.e, r.bound(id, r.e.End.IPv4).Listen(0)); return id }},
	{"connecting", func(r *idRig, id *cm.ID) *cm.ID {
		r.e.routed(id, r.nowhere)
		rig.Check(r.e, id.Connect(anyParam()))
		return id
	}},
	{"requested", (*idRig).requested},
	{"accepted by the peer", (*idRig).accepted},
	{"established", func(r *idRig, id *cm.ID) *cm.ID { rig.Check(r.e, r.accepted(id).Accept(nil)); return id }},
}

// anyParam returns parameters with a queue pair number, which connections require.
func anyParam() *cm.ConnParam { return &cm.ConnParam{QPN: otherQPN()} }

func (r *idRig) bound(id *cm.ID, to netip.Addr) *cm.ID {
	rig.Check(r.e, id.Bind(port(to, 0)))
	return id
}

// requested makes an id listen, and returns the id of a request to it.
func (r *idRig) requested(id *cm.ID) *cm.ID {
	rig.Check(r.e, r.bound(id, r.e.End.IPv4).Listen(0))
	local, err := id.LocalAddr()
	rig.Check(r.e, err)
	newIDEnd(r.peer).connectIn(id.PortSpace(), local, "") // its events are in a channel of their own
	return r.e.request(id).ID
}

// accepted returns an id whose connection request the peer has accepted.
func (r *idRig) accepted(id *cm.ID) *cm.ID {
	peer := newIDEnd(r.peer)
	service, at := peer.serviceIn(cm.PortSpaceTCP)
	r.e.routed(id, port(r.peer.End.IPv4, at))
	rig.Check(r.e, id.Connect(anyParam()))
	rig.Check(r.e, peer.request(service).ID.Accept(anyParam()))
	r.e.event(id, cm.EventConnectResponse)
	return id
}

// idCall is a method of an id, and its result in each state, in port space UDP and in TCP: one letter of idErrnos per
// state.
type idCall struct {
	name     string
	call     func(r *idRig, id *cm.ID) error
	udp, tcp string
}

// idErrnos contains the errors of the letters in idCall.
var idErrnos = map[byte]error{'y': nil, 'i': unix.EINVAL, 's': unix.EOPNOTSUPP, 'a': unix.EADDRNOTAVAIL}

// idCalls contains all methods of an id except Migrate, QP and Close, which is always allowed.
var idCalls = []idCall{
	{"bind", func(r *idRig, id *cm.ID) error { return id.Bind(port(r.e.End.IPv4, 0)) }, "yiiiiiii", "yiiiiiiiii"},
	{"resolve address", func(r *idRig, id *cm.ID) error { return id.ResolveAddr(netip.AddrPort{}, r.nowhere, resolveTimeout) }, "yyyiiiii", "yyyiiiiiii"},
	{"resolve route", func(_ *idRig, id *cm.ID) error { return id.ResolveRoute() }, "iiiyiiii", "iiiyiiiiii"},
	{"attributes", func(_ *idRig, id *cm.ID) error { _, _, err := id.InitQPAttr(verbs.QPStateRTS); return err }, "iiyyyyyy", "iiiiiiiyyy"},
	{"attributes of ERR", func(_ *idRig, id *cm.ID) error { _, _, err := id.InitQPAttr(verbs.QPStateErr); return err }, "iiiiiiii", "iiiiiiiiii"},
	{"create QP", func(r *idRig, id *cm.ID) error {
		_, err := id.CreateQP(r.e.PD, &verbs.QPInitAttr{SendCQ: r.e.CQ, RecvCQ: r.e.CQ})
		return err
	}, "iiyyyyyy", "iiyyyyyyyy"},
	{"destroy QP", func(_ *idRig, id *cm.ID) error { return id.DestroyQP() }, "iiiiiiii", "iiiiiiiiii"},
	{"join", func(_ *idRig, id *cm.ID) error { return id.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, nil) }, "iiyyiiii", "iiiiiiiiii"},
	{"leave", func(_ *idRig, id *cm.ID) error { return id.LeaveMulticast(rig.GroupV4) }, "aaaaaaaa", "aaaaaaaaaa"},
	{"listen", func(_ *idRig, id *cm.ID) error { return id.Listen(0) }, "iyyiiiii", "iyyiiiiiii"},
	{"connect", func(_ *idRig, id *cm.ID) error { return id.Connect(anyParam()) }, "iiiiyiii", "iiiiyiiiii"},
	{"accept", func(_ *idRig, id *cm.ID) error { return id.Accept(anyParam()) }, "iiiiiiiy", "iiiiiiiyii"},
	{"accept a response", func(_ *idRig, id *cm.ID) error { return id.Accept(nil) }, "iiiiiiii", "iiiiiiiiyi"},
	{"reject", func(_ *idRig, id *cm.ID) error { return id.Reject(nil) }, "iiiiiiiy", "iiiiiiiyyi"},
	{"disconnect", func(_ *idRig, id *cm.ID) error { return id.Disconnect() }, "iiiiiiyy", "iiiiiiyyyy"},
	{"notify", func(_ *idRig, id *cm.ID) error { return id.Notify(verbs.EventCommEst) }, "iiiiiiii", "iiiiiiiiiy"},
	{"reuse", func(_ *idRig, id *cm.ID) error { return id.SetReuseAddr(true) }, "yiiiiiii", "yiiiiiiiii"},
	{"af only", func(_ *idRig, id *cm.ID) error { return id.SetAFOnly(true) }, "yyyiiiii", "yyyiiiiiii"},
	{"service type", func(_ *idRig, id *cm.ID) error { return id.SetServiceType(8) }, "yyyyyyyy", "yyyyyyyyyy"},
	{"addresses", func(_ *idRig, id *cm.ID) error {
		_, local := id.LocalAddr()
		_, peer := id.PeerAddr()
		_, route := id.Route()
		_, device := id.Device()
		return errors.Join(local, peer, route, device)
	}, "yyyyyyyy", "yyyyyyyyyy"},
}

// idStates calls each method in each state, in both port spaces.
func idStates(t *testing.T, w *rig.World) {
	r := &idRig{e: newIDEnd(w.A), peer: w.B, nowhere: port(w.B.End.IPv4, 7)}
	for _, call := range idCalls {
		for at := range call.udp {
			r.try(t, &call, cm.PortSpaceUDP, idStateRows[at], idErrnos[call.udp[at]])
		}
		for at := range call.tcp {
			r.try(t, &call, cm.PortSpaceTCP, idStateRows[at], idErrnos[call.tcp[at]])
		}
	}
}

func (r *idRig) try(t *testing.T, call *idCall, space cm.PortSpace, state idState, want error) {
	t.Helper()
	first := r.e.id(space)
	id := state.enter(r, first)
	err := call.call(r, id)
	what := fmt.Sprintf("%s in port space %v, %s", call.name, space, state.name)
	if want == nil && err != nil || !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
	if id.QP() != nil {
		rig.Check(t, id.DestroyQP())
	}
	rig.Check(t, id.Close())
	rig.Refused(t, call.call(r, id), unix.EINVAL)
	if first != id {
		rig.Check(t, first.Close())
	}
}
