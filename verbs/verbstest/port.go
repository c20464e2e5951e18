package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What the host changes under a card: these tests run where the pair can change it.
var portTests = []test{
	{name: "link down and up", run: linkDownAndUp, needs: func(p *Pair) bool { return p.A.SetLink != nil }},
	{name: "addresses come and go", run: addressesComeAndGo, needs: func(p *Pair) bool { return p.B.AddAddress != nil && p.B.RemoveAddress != nil }},
	{name: "MTU changes", run: mtuChanges, needs: func(p *Pair) bool { return p.A.SetMTU != nil }},
}

// awaitEvent reads events of the port until this one has come.
func (s *station) awaitEvent(kind verbs.EventType) {
	s.Helper()
	for {
		event := s.event()
		if event.Port != 1 || event.CQ != nil || event.QP != nil {
			s.Errorf("%+v is no event of the port", event)
		}
		if event.Type == kind {
			return
		}
	}
}

func (s *station) portState() verbs.PortState {
	s.Helper()
	port, err := s.ctx.QueryPort(1)
	check(s, err)
	return port.State
}

// A link that goes down raises an event, and messages that are sent then are dropped. When it is up
// again, the same handles and queue pairs work.
func linkDownAndUp(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv4)
	a.end.SetLink(false)
	a.awaitEvent(verbs.EventPortErr)
	if a.portState() != verbs.PortDown {
		t.Error("the port is not down")
	}
	a.post(a.send(1, ah, b.qp))
	a.expect(ok(1)) // UD is unreliable here too
	a.end.SetLink(true)
	a.awaitEvent(verbs.EventPortActive)
	if a.portState() != verbs.PortActive {
		t.Error("the port is not active")
	}
	b.receive(0)
	eventually(t, "a message", func() bool { return a.arrives(ah, b) })
}

// arrives reports whether a message arrives at the peer, which has a receive posted: on a link
// that has just come up it may not.
func (s *station) arrives(ah *verbs.AH, peer *station) bool {
	s.Helper()
	s.post(s.send(2, ah, peer.qp))
	s.expect(ok(2))
	return len(completions(s, peer.cq)) > 0
}

// An address that the interface gets can be used; one that it loses cannot.
func addressesComeAndGo(t *testing.T, w *world) {
	a, b := w.a, w.b
	for _, address := range []netip.Addr{b.end.IPv4, b.end.IPv6} {
		fresh := beyond(address)
		b.end.AddAddress(fresh)
		b.awaitEvent(verbs.EventGIDChange)
		eventually(t, "the GID", func() bool { return b.hasGID(fresh) })
		ah := a.ah(fresh)
		b.receive(0)
		eventually(t, "a message", func() bool { return a.arrives(ah, b) })
		index := b.line(fresh)
		b.end.RemoveAddress(fresh)
		b.awaitEvent(verbs.EventGIDChange)
		eventually(t, "the end of the GID", func() bool { return !b.hasGID(fresh) })
		route := b.route(a.end.IPv4)
		route.GRH.SGIDIndex = index
		_, err := b.pd.CreateAH(guard(t), route)
		refused(t, err, unix.ENODATA)
		check(t, ah.Close())
	}
}

// beyond is another address of the same subnet.
func beyond(a netip.Addr) netip.Addr {
	bytes := a.AsSlice()
	bytes[len(bytes)-1] += 100
	next, _ := netip.AddrFromSlice(bytes)
	return next
}

func (s *station) hasGID(address netip.Addr) bool {
	s.Helper()
	gids, err := s.ctx.QueryGIDTable(1)
	check(s, err)
	for _, entry := range gids {
		if entry.GID == gid(address) {
			return true
		}
	}
	return false
}

// The interface's MTU limits the length of messages.
func mtuChanges(t *testing.T, w *world) {
	a := w.a
	before, err := a.ctx.QueryPort(1)
	check(t, err)
	ah := a.ah(w.b.end.IPv4)
	a.end.SetMTU(700)
	a.awaitEvent(verbs.EventMTUChange)
	if n := a.mtu(); n != 512 {
		t.Errorf("active MTU %d", n)
	}
	a.post(a.send(1, ah, w.b.qp, a.piece(0, 512)), a.send(2, ah, w.b.qp, a.piece(0, 513)))
	a.expect(ok(1), outcome{2, verbs.WCLocLenErr})
	a.end.SetMTU(before.InterfaceMTU)
	a.awaitEvent(verbs.EventMTUChange)
	if now, err := a.ctx.QueryPort(1); now.ActiveMTU != before.ActiveMTU || err != nil {
		t.Errorf("%+v, %v; want %+v", now, err, before)
	}
	to(t, a.qp, verbs.QPStateRTS)
	a.post(a.send(3, ah, w.b.qp, a.piece(0, 513)))
	a.expect(ok(3))
}
