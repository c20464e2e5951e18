package verbstest

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// idState is how an id can be, and how it comes there.
type idState struct {
	name  string
	enter func(r *idRig, id *cm.ID) *cm.ID // gives another id where that is what it takes
}

// idRig is what the calls are made with: ids of e, and a peer.
type idRig struct {
	e       *idEnd
	peer    *station
	nowhere netip.AddrPort // of the peer: nobody listens
}

// idStateRows are the columns of idCalls, in their order. Those from "listening" on are of port space
// UDP only.
var idStateRows = []idState{
	{"idle", func(_ *idRig, id *cm.ID) *cm.ID { return id }},
	{"bound to all", func(r *idRig, id *cm.ID) *cm.ID { return r.bound(id, netip.IPv4Unspecified()) }},
	{"bound", func(r *idRig, id *cm.ID) *cm.ID { return r.bound(id, r.e.end.IPv4) }},
	{"address resolved", func(r *idRig, id *cm.ID) *cm.ID { r.e.resolved(id, r.nowhere); return id }},
	{"route resolved", func(r *idRig, id *cm.ID) *cm.ID { r.e.routed(id, r.nowhere); return id }},
	{"listening", func(r *idRig, id *cm.ID) *cm.ID { check(r.e, r.bound(id, r.e.end.IPv4).Listen(0)); return id }},
	{"connecting", func(r *idRig, id *cm.ID) *cm.ID { r.e.routed(id, r.nowhere); check(r.e, id.Connect(nil)); return id }},
	{"asked", (*idRig).asked},
}

func (r *idRig) bound(id *cm.ID, to netip.Addr) *cm.ID {
	check(r.e, id.Bind(port(to, 0)))
	return id
}

// asked is the id of a request to one that listens.
func (r *idRig) asked(id *cm.ID) *cm.ID {
	check(r.e, r.bound(id, r.e.end.IPv4).Listen(0))
	local, err := id.LocalAddr()
	check(r.e, err)
	newIDEnd(r.peer).connect(local, "") // its answer comes through a channel of its own
	return r.e.request(id).ID
}

// idCall is a call of an id, and what it gives in each state: in port space UDP, and in TCP.
type idCall struct {
	name     string
	call     func(r *idRig, id *cm.ID) error
	udp, tcp string
}

// The letters of idCall: y for no error.
var idErrnos = map[byte]error{'y': nil, 'i': unix.EINVAL, 's': unix.EOPNOTSUPP, 'a': unix.EADDRNOTAVAIL}

// idCalls are all calls of an id but Close, which is always allowed, Migrate and QP.
var idCalls = []idCall{
	{"bind", func(r *idRig, id *cm.ID) error { return id.Bind(port(r.e.end.IPv4, 0)) }, "yiiiiiii", "yiiii"},
	{"resolve address", func(r *idRig, id *cm.ID) error { return id.ResolveAddr(netip.AddrPort{}, r.nowhere, resolveTimeout) }, "yyyiiiii", "yyyii"},
	{"resolve route", func(_ *idRig, id *cm.ID) error { return id.ResolveRoute() }, "iiiyiiii", "iiiyi"},
	{"attributes", func(_ *idRig, id *cm.ID) error { _, _, err := id.InitQPAttr(verbs.QPStateRTS); return err }, "iiyyyyyy", "iisss"},
	{"attributes of ERR", func(_ *idRig, id *cm.ID) error { _, _, err := id.InitQPAttr(verbs.QPStateErr); return err }, "iiiiiiii", "iisss"},
	{"create QP", func(r *idRig, id *cm.ID) error {
		_, err := id.CreateQP(r.e.pd, &verbs.QPInitAttr{SendCQ: r.e.cq, RecvCQ: r.e.cq})
		return err
	}, "iiyyyyyy", "iisss"},
	{"destroy QP", func(_ *idRig, id *cm.ID) error { return id.DestroyQP() }, "iiiiiiii", "iiiii"},
	{"join", func(_ *idRig, id *cm.ID) error { return id.JoinMulticast(groupV4, nil) }, "iiyyiiii", "iiiii"},
	{"leave", func(_ *idRig, id *cm.ID) error { return id.LeaveMulticast(groupV4) }, "aaaaaaaa", "aaaaa"},
	{"listen", func(_ *idRig, id *cm.ID) error { return id.Listen(0) }, "iyyiiiii", "issii"},
	{"connect", func(_ *idRig, id *cm.ID) error { return id.Connect(nil) }, "iiiiyiii", "iiiis"},
	{"accept", func(r *idRig, id *cm.ID) error { return id.Accept(&cm.ConnParam{QPN: r.e.qp.Number()}) }, "iiiiiiiy", "iiiii"},
	{"accept a response", func(_ *idRig, id *cm.ID) error { return id.Accept(nil) }, "iiiiiiii", "iiiii"},
	{"reject", func(_ *idRig, id *cm.ID) error { return id.Reject(nil) }, "iiiiiiiy", "iiiii"},
	{"disconnect", func(_ *idRig, id *cm.ID) error { return id.Disconnect() }, "iiiiiiyy", "iiiii"},
	{"notify", func(_ *idRig, id *cm.ID) error { return id.Notify(verbs.EventCommEst) }, "iiiiiiii", "iiiii"},
	{"reuse", func(_ *idRig, id *cm.ID) error { return id.SetReuseAddr(true) }, "yiiiiiii", "yiiii"},
	{"af only", func(_ *idRig, id *cm.ID) error { return id.SetAFOnly(true) }, "yyyiiiii", "yyyii"},
	{"service type", func(_ *idRig, id *cm.ID) error { return id.SetServiceType(8) }, "yyyyyyyy", "yyyyy"},
	{"addresses", func(_ *idRig, id *cm.ID) error {
		_, local := id.LocalAddr()
		_, peer := id.PeerAddr()
		_, route := id.Route()
		_, device := id.Device()
		return errors.Join(local, peer, route, device)
	}, "yyyyyyyy", "yyyyy"},
}

// idStates makes each call in each state, in both port spaces.
func idStates(t *testing.T, w *world) {
	r := &idRig{e: newIDEnd(w.a), peer: w.b, nowhere: port(w.b.end.IPv4, 7)}
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
		check(t, id.DestroyQP())
	}
	check(t, id.Close())
	refused(t, call.call(r, id), unix.EINVAL)
	if first != id {
		check(t, first.Close())
	}
}
