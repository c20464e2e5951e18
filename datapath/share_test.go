// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

const wholeWindow = 128 // packets

// shareOf returns the number of packets that the connection may have in flight now.
func (c *Connection) shareOf() uint32 {
	c.begin()
	return uint32(c.flight.Limits(0, 0).Window)
}

// silentQPs adds queue pairs whose peers do not exist to the end's program, and sends on each.
func (e *end) silentQPs(count int, peer *end) {
	for i := range count {
		e.addQP(wire.QPN(0x1000 + i))
		e.meet(peer, wire.ServiceRC, func(c *Connection) { c.Timeout, c.RetryCnt = 10, 7 })
		e.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
	}
}

func (p *pairOf) windowOfA() (packets uint32) {
	p.a.engine.Do(func() { packets = p.a.c.Requester.Window(p.a.c.shareOf()) })
	return packets
}

// Connections of another program that wait for a dead peer do not reduce a connection's window.
func TestWindowBesideSilentSession(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	other := p.a.another(0x999, wire.ServiceRC)
	other.silentQPs(128, p.b)
	p.a.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 1<<20))
	most := uint32(0)
	for len(p.a.poll()) == 0 {
		p.round()
		if w := p.windowOfA(); w < wholeWindow {
			t.Fatalf("got a window of %d packets", w)
		}
		most = max(most, uint32(p.a.qp.PSN().Ahead(p.a.c.Requester.Oldest())))
	}
	if most < wholeWindow {
		t.Errorf("at most %d packets were in flight", most)
	}
}

// A program's own connections do not reduce its windows after a timeout or during an RNR wait. A connection counts
// again after a response.
func TestWindowBesideOwnSilentOnes(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	one := p.a.c
	p.a.silentQPs(128, p.b)
	last := p.a.c
	p.a.c = one
	for p.round(); p.windowOfA() == wholeWindow; p.round() { // until they have sent
	}
	for e := p.a.engine; e.flights.Tenants() != 0; { // until all have timed out
		p.round()
	}
	if w := p.windowOfA(); w != wholeWindow {
		t.Errorf("got a window of %d packets", w)
	}
	p.a.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6)) // on the last queue pair, which has unacknowledged packets
	for begun := uint32(0); begun < 2; p.a.engine.Do(func() { begun = last.Requester.Begun() }) {
		p.round()
	}
	p.a.engine.Do(func() {
		e := p.a.engine
		last.Requester.Receive(e.round.now(), packet(t, wire.Transport{Opcode: wire.OpAcknowledge, PSN: last.Requester.Oldest()}))
		last.follow()
		if flows := last.qp.Session.flights.Flows(); e.flights.Tenants() != 1 || flows != 1 {
			t.Errorf("%d sessions and %d queue pairs are in flight", e.flights.Tenants(), flows)
		}
		e.RemoveQP(last.qp)
		if flows := last.qp.Session.flights.Flows(); e.flights.Tenants() != 0 || flows != 0 {
			t.Errorf("%d sessions and %d queue pairs are left in flight", e.flights.Tenants(), flows)
		}
	})
}

// A peer that waits for READ responses receives them even if the limit of outstanding READs changes meanwhile, as a
// program may request in SQD.
func TestReadLimitChanges(t *testing.T) {
	for _, most := range []uint8{1, 2, 3, 8} {
		p := connect(t, wire.ServiceRC, 1, nil) // 4
		for i := range 5 {
			p.a.post(to(ib.WRRDMARead, i*50_000), ring.Atomic{}, at(1<<20+i*50_000, 50_000))
		}
		add := to(ib.WRAtomicFetchAndAdd, 8)
		p.a.post(add, ring.Atomic{CompareAdd: 1}, at(2<<20, 8))
		for !p.b.c.Responder.Owes() {
			p.round()
		}
		p.b.engine.Do(func() { p.b.qp.SetState(ib.QPStateSQD) })
		p.b.engine.Do(func() { p.b.c.MaxDestRDAtomic = most })
		p.b.engine.Do(func() { p.b.qp.SetState(ib.QPStateRTS) })
		p.a.engine.Do(func() { p.a.c.MaxRDAtomic = min(most, 4) })
		all, _ := p.await(6, 0)
		expect(t, all, slices.Repeat([]ib.WCStatus{ib.WCSuccess}, 6)...)
		if kept := p.b.c.Responder.Kept(); kept != int(most) || p.b.c.Responder.Owes() {
			t.Errorf("limit %d: %d responses are kept", most, kept)
		}
	}
}

// The last responses of a connection that is removed do not affect a message that is being copied to the members of a
// group.
func TestEndDuringFanOut(t *testing.T) {
	r := newRig(t)
	members := []*rig{r}
	for i := range 400 {
		members = append(members, r.member(wire.QPN(0x1000+i)))
	}
	r.setGroup(testGroup, members...)
	for _, m := range members {
		m.postRecv(1, piece(0, 100))
	}
	c := &end{TB: t, engine: r.engine, session: r.session, gid: ownGID, memory: r.memory}
	c.addQP(0x2000)
	c.meet(c, wire.ServiceRC, nil)
	r.engine.Do(func() { c.c.Path.set(r.engine, PathAttr{State: PathLocal}) })

	r.engine.Do(func() {
		path := new(Path)
		path.set(r.engine, PathAttr{State: PathOpen})
		r.session.SetAH(9, &AH{PD: testPD, Path: path, Group: true, Dest: testGroup, Template: wire.NewTemplate(wire.Path{Source: ownGID, Dest: testGroup})})
	})
	r.send.Put(&ring.Send{Opcode: ib.WRSend, AH: 9, RemoteQPN: wire.QPNMulticast, RemoteQKey: testQKey})
	r.send.Publish()
	r.doorbell.Ring(3)
	r.engine.lease.Lock()
	r.engine.runRound()
	pending := r.engine.round.looping.pending()
	r.engine.lease.Unlock()
	if !pending {
		t.Fatal("the round had room for all members")
	}
	r.engine.Do(func() {
		c.owe()
		r.engine.RemoveQP(c.qp)
	})
	r.run()
	for i, m := range members {
		if got := m.completions(); len(got) != 1 || got[0].Status != ib.WCSuccess {
			t.Fatalf("member %d got %+v", i, got)
		}
	}
}

// If a link's capacity is limited in bytes, it limits the window too, but not below the minimum.
func TestWindowOfALinkWithLittleRoom(t *testing.T) {
	for room, want := range map[int]uint32{0: wholeWindow, 1 << 20: wholeWindow, 50 * (1024 + wire.MTUOverhead): 50, 100: 4} {
		p := connect(t, wire.ServiceRC, 1, nil)
		p.a.engine.link = roomOf{p.a.engine.link, room}
		if w := p.windowOfA(); w != want {
			t.Errorf("%d bytes of room: a window of %d packets, want %d", room, w, want)
		}
	}
}

// roomOf is a link with a capacity.
type roomOf struct {
	link.Link
	room int
}

func (r roomOf) Room() int { return r.room }

// Long packets need few frames: a single connection may then use all of the card's packets in flight.
func TestShareOfLongPackets(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	if share := p.a.c.shareOf(); share != maxFrames {
		t.Errorf("got %d short packets in flight", share)
	}
	p.takesLong()
	if share := p.a.c.shareOf(); share != maxFlight {
		t.Errorf("got %d packets in flight, in long ones", share)
	}
	p.network.Impair(link.Impairment{Loss: 0.1})
	if share := p.a.c.shareOf(); share != maxFrames {
		t.Errorf("got %d packets in flight while the network is impaired", share)
	}
}
