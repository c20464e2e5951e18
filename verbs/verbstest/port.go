// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// Tests of changes of a card's host interface. They require a pair that can make these changes.
var portTests = []rig.Test{
	{Name: "link down and up", Run: linkDownAndUp, Needs: func(p *rig.Pair) bool { return p.A.SetLink != nil }},
	{Name: "addresses come and go", Run: addressesComeAndGo, Needs: func(p *rig.Pair) bool { return p.B.AddAddress != nil && p.B.RemoveAddress != nil }},
	{Name: "MTU changes", Run: mtuChanges, Needs: func(p *rig.Pair) bool { return p.A.SetMTU != nil }},
}

// linkDownAndUp checks that a link that goes down or up raises an event, that messages are dropped while it is down,
// and that handles and queue pairs work afterwards.
func linkDownAndUp(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv4)
	a.End.SetLink(false)
	a.AwaitEvent(verbs.EventPortErr)
	if a.PortState() != verbs.PortDown {
		t.Error("the port is not down")
	}
	a.Post(a.Send(1, ah, b.QP))
	a.Expect(rig.OK(1)) // UD reports no loss
	a.End.SetLink(true)
	a.AwaitEvent(verbs.EventPortActive)
	if a.PortState() != verbs.PortActive {
		t.Error("the port is not active")
	}
	b.Receive(0)
	rig.Eventually(t, "a message", func() bool { return a.Arrives(ah, b) })
}

// addressesComeAndGo checks that an address can be used while the interface has it.
func addressesComeAndGo(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	for _, address := range []netip.Addr{b.End.IPv4, b.End.IPv6} {
		fresh := beyond(address)
		b.End.AddAddress(fresh)
		b.AwaitEvent(verbs.EventGIDChange)
		rig.Eventually(t, "the GID", func() bool { return b.HasGID(fresh) })
		ah := a.AH(fresh)
		b.Receive(0)
		rig.Eventually(t, "a message", func() bool { return a.Arrives(ah, b) })
		index := b.Line(fresh)
		b.End.RemoveAddress(fresh)
		b.AwaitEvent(verbs.EventGIDChange)
		rig.Eventually(t, "the removal of the GID", func() bool { return !b.HasGID(fresh) })
		route := b.Route(a.End.IPv4)
		route.GRH.SGIDIndex = index
		_, err := b.PD.CreateAH(rig.Guard(t), route)
		rig.Refused(t, err, unix.ENODATA)
		rig.Check(t, ah.Close())
	}
}

// beyond returns another address of the same subnet.
func beyond(a netip.Addr) netip.Addr {
	bytes := a.AsSlice()
	bytes[len(bytes)-1] += 100
	next, _ := netip.AddrFromSlice(bytes)
	return next
}

// mtuChanges checks that the interface's MTU limits the length of messages.
func mtuChanges(t *testing.T, w *rig.World) {
	a := w.A
	before, err := a.Ctx.QueryPort(1)
	rig.Check(t, err)
	ah := a.AH(w.B.End.IPv4)
	a.End.SetMTU(700)
	a.AwaitEvent(verbs.EventMTUChange)
	if n := a.MTU(); n != 512 {
		t.Errorf("active MTU %d", n)
	}
	a.Post(a.Send(1, ah, w.B.QP, a.Piece(0, 512)), a.Send(2, ah, w.B.QP, a.Piece(0, 513)))
	a.Expect(rig.OK(1), rig.Ended(2, verbs.WCLocLenErr))
	a.End.SetMTU(before.InterfaceMTU)
	a.AwaitEvent(verbs.EventMTUChange)
	if now, err := a.Ctx.QueryPort(1); now.ActiveMTU != before.ActiveMTU || err != nil {
		t.Errorf("%+v, %v; want %+v", now, err, before)
	}
	rig.To(t, a.QP, verbs.QPStateRTS)
	a.Post(a.Send(3, ah, w.B.QP, a.Piece(0, 513)))
	a.Expect(rig.OK(3))
}
