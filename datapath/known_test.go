// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// another returns a queue pair of another program on the end's engine. It sends with the card's own addresses, which
// are also those of the victim's peer, as the peer is on the same card.
func (e *end) another(number wire.QPN, service wire.Service) *end {
	e.Helper()
	o := &end{TB: e.TB, engine: e.engine, memory: make([]byte, 4096), mac: e.mac, gid: e.gid, bell: ring.NewDoorbell(ring.Alloc(ring.DoorbellSize))}
	o.session = NewSession(o.bell)
	o.engine.Do(func() {
		o.session.join(o.engine)
		o.session.SetMR(&region.MR{LKey: testKey(1), PD: testPD, Base: endBase, Memory: o.memory, Write: true})
	})
	o.addQP(number)
	o.meet(e, service, nil)
	o.engine.Do(func() { o.c.Path.set(o.engine, PathAttr{State: PathLocal}) })
	return o
}

// addQP replaces the end's queue pair by a new one of its program.
func (e *end) addQP(number wire.QPN) {
	e.makeQueues()
	e.qp.Number, e.qp.DoorbellIndex = number, uint32(number)
}

// A connection whose peer is on the same card accepts packets from the peer only. Packets from another program of the
// card are dropped, even with valid keys and the expected PSN.
func TestOthersAreNotHeard(t *testing.T) {
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC} {
		network := link.NewNetwork(1)
		victim := newEnd(t, network, 1)
		peer := victim.another(0x777, service)
		victim.meet(peer, service, func(c *Connection) { c.PeerQPN = peer.qp.Number })
		victim.engine.Do(func() { victim.c.Path.set(victim.engine, PathAttr{State: PathLocal}) })
		attacker := victim.another(0x888, service)
		p := &pairOf{T: t, network: network, a: victim, b: newEnd(t, network, 2)}

		copy(attacker.memory, "forged")
		victim.postRecv(1, at(0, 100))
		attacker.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
		attacker.post(to(ib.WRRDMAWrite, 1000), ring.Atomic{}, at(0, 6))
		for range 50 {
			p.round()
		}
		if got := victim.poll(); len(got) != 0 || string(victim.memory[1000:1006]) == "forged" {
			t.Fatalf("%v: another program's message was accepted: %+v", service, got)
		}
		if c := victim.engine.Counters(); c.Drops[DropNotPeer] < 2 {
			t.Errorf("%v: %+v", service, c.Drops)
		}
		peer.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
		taken, _ := p.await(1, 0)
		expect(t, taken, ib.WCSuccess)
	}
}

// A response that another program forges acknowledges nothing.
func TestForgedAnswers(t *testing.T) {
	network := link.NewNetwork(1)
	victim := newEnd(t, network, 1)
	peer := victim.another(0x777, wire.ServiceRC)
	victim.meet(peer, wire.ServiceRC, func(c *Connection) { c.PeerQPN = 0x999 }) // which sends nothing
	victim.engine.Do(func() { victim.c.Path.set(victim.engine, PathAttr{State: PathLocal}) })
	p := &pairOf{T: t, network: network, a: victim, b: newEnd(t, network, 2)}
	victim.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
	peer.engine.Do(func() { // acknowledges packets that it has not received
		peer.c.Responder.ExpectedPSN = victim.c.Requester.Oldest().Plus(1)
		peer.owe()
		peer.engine.round.turns.add(peer.qp)
	})
	for range 20 {
		p.round()
	}
	if got := victim.poll(); len(got) != 0 && got[0].Status == ib.WCSuccess {
		t.Errorf("%+v", got)
	}
}
