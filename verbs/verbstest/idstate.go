package verbstest

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// idState is how an id can be, and how it comes there.
type idState struct {
	name  string
	enter func(e *idEnd, id *cm.ID, peer netip.AddrPort)
}

// idStateRows are the columns of idCalls, in their order.
var idStateRows = []idState{
	{"idle", func(*idEnd, *cm.ID, netip.AddrPort) {}},
	{"bound to all", func(e *idEnd, id *cm.ID, _ netip.AddrPort) { check(e, id.Bind(port(netip.IPv4Unspecified(), 0))) }},
	{"bound", func(e *idEnd, id *cm.ID, _ netip.AddrPort) { check(e, id.Bind(port(e.end.IPv4, 0))) }},
	{"address resolved", (*idEnd).resolvedTo},
	{"route resolved", (*idEnd).routedTo},
}

func (e *idEnd) resolvedTo(id *cm.ID, peer netip.AddrPort) { e.resolved(id, peer) }
func (e *idEnd) routedTo(id *cm.ID, peer netip.AddrPort)   { e.routed(id, peer) }

const (
	yes = unix.Errno(0)
	inv = unix.EINVAL
	sup = unix.EOPNOTSUPP
	not = unix.EADDRNOTAVAIL
)

// idCalls are all calls of an id, and what they give in each state: in port space UDP, and in TCP where
// that differs.
var idCalls = []struct {
	name string
	call func(e *idEnd, id *cm.ID, peer netip.AddrPort) error
	udp  [5]unix.Errno
	tcp  [5]unix.Errno
}{
	{"bind", func(e *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Bind(port(e.end.IPv4, 0)) },
		[5]unix.Errno{yes, inv, inv, inv, inv}, [5]unix.Errno{yes, inv, inv, inv, inv}},
	{"resolve address", func(_ *idEnd, id *cm.ID, peer netip.AddrPort) error {
		return id.ResolveAddr(netip.AddrPort{}, peer, resolveTimeout)
	}, [5]unix.Errno{yes, yes, yes, inv, inv}, [5]unix.Errno{yes, yes, yes, inv, inv}},
	{"resolve route", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.ResolveRoute() },
		[5]unix.Errno{inv, inv, inv, yes, inv}, [5]unix.Errno{inv, inv, inv, yes, inv}},
	{"attributes", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error {
		_, _, err := id.InitQPAttr(verbs.QPStateInit)
		return err
	}, [5]unix.Errno{inv, inv, yes, yes, yes}, [5]unix.Errno{inv, inv, sup, sup, sup}},
	{"attributes of ERR", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error {
		_, _, err := id.InitQPAttr(verbs.QPStateErr)
		return err
	}, [5]unix.Errno{inv, inv, inv, inv, inv}, [5]unix.Errno{inv, inv, sup, sup, sup}},
	{"create QP", func(e *idEnd, id *cm.ID, _ netip.AddrPort) error {
		_, err := id.CreateQP(e.pd, &verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq})
		return err
	}, [5]unix.Errno{inv, inv, yes, yes, yes}, [5]unix.Errno{inv, inv, sup, sup, sup}},
	{"join", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.JoinMulticast(groupV4, nil) },
		[5]unix.Errno{inv, inv, yes, yes, inv}, [5]unix.Errno{inv, inv, inv, inv, inv}},
	{"leave", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.LeaveMulticast(groupV4) },
		[5]unix.Errno{not, not, not, not, not}, [5]unix.Errno{not, not, not, not, not}},
	{"listen", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Listen(0) },
		[5]unix.Errno{inv, sup, sup, inv, inv}, [5]unix.Errno{inv, sup, sup, inv, inv}},
	{"connect", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Connect(&cm.ConnParam{}) },
		[5]unix.Errno{inv, inv, inv, inv, sup}, [5]unix.Errno{inv, inv, inv, inv, sup}},
	{"accept", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Accept(&cm.ConnParam{}) },
		[5]unix.Errno{inv, inv, inv, inv, inv}, [5]unix.Errno{inv, inv, inv, inv, inv}},
	{"accept a response", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Accept(nil) },
		[5]unix.Errno{inv, inv, inv, inv, inv}, [5]unix.Errno{inv, inv, inv, inv, inv}},
	{"reject", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Reject(nil) },
		[5]unix.Errno{inv, inv, inv, inv, inv}, [5]unix.Errno{inv, inv, inv, inv, inv}},
	{"disconnect", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Disconnect() },
		[5]unix.Errno{inv, inv, inv, inv, inv}, [5]unix.Errno{inv, inv, inv, inv, inv}},
	{"notify", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.Notify(verbs.EventCommEst) },
		[5]unix.Errno{inv, inv, inv, inv, inv}, [5]unix.Errno{inv, inv, inv, inv, inv}},
	{"reuse", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.SetReuseAddr(true) },
		[5]unix.Errno{yes, inv, inv, inv, inv}, [5]unix.Errno{yes, inv, inv, inv, inv}},
	{"af only", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.SetAFOnly(true) },
		[5]unix.Errno{yes, yes, yes, inv, inv}, [5]unix.Errno{yes, yes, yes, inv, inv}},
	{"service type", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error { return id.SetServiceType(8) },
		[5]unix.Errno{yes, yes, yes, yes, yes}, [5]unix.Errno{yes, yes, yes, yes, yes}},
	{"addresses", func(_ *idEnd, id *cm.ID, _ netip.AddrPort) error {
		_, err := id.LocalAddr()
		_, other := id.PeerAddr()
		_, device := id.Device()
		return errors.Join(err, other, device)
	}, [5]unix.Errno{}, [5]unix.Errno{}},
}

// idStates makes each call in each state, in both port spaces.
func idStates(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	peer := port(w.b.end.IPv4, 7174)
	for space, wants := range map[cm.PortSpace]func(int) [5]unix.Errno{
		cm.PortSpaceUDP: func(n int) [5]unix.Errno { return idCalls[n].udp },
		cm.PortSpaceTCP: func(n int) [5]unix.Errno { return idCalls[n].tcp },
	} {
		for n, call := range idCalls {
			for at, state := range idStateRows {
				e := &idEnd{e.station, e.channel}
				id := e.id(space)
				state.enter(e, id, peer)
				err := call.call(e, id, peer)
				if want := wants(n)[at]; want == yes && err != nil || want != yes && !errors.Is(err, want) {
					t.Errorf("%s, %v, %s: %v, want %v", call.name, space, state.name, err, want)
				}
				if id.QP() != nil {
					check(t, id.DestroyQP())
				}
				check(t, id.Close())
			}
		}
	}
	check(t, e.channel.Close())
}
