// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/peers"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// datagrams converts an end's queue pair to a UD queue pair in RTS. Address handle 0 refers to the group, handle 1 to
// this card itself.
func (c *crew) datagrams(e *end, group wire.GID) {
	e.qp.Serve(new(Datagrams))
	e.qp.QKey = testQKey
	send := ring.SendGeometry(endDepth, 4, 64)
	memory := ring.Alloc(send.Size())
	e.qp.Send, _ = ring.NewSendConsumer(memory, send)
	e.send, _ = ring.NewSendProducer(memory, send)
	e.qp.MaxSendSGE, e.qp.MaxInline = send.SendRoom()
	e.engine.Do(func() {
		e.engine.AddQP(e.qp)
		e.qp.SetState(ib.QPStateRTS)
		for handle, to := range []struct {
			dest  wire.GID
			state PathState
		}{{group, PathOpen}, {c.gid, PathLocal}} {
			ah := &AH{PD: testPD, Path: new(Path), Template: wire.NewTemplate(wire.Path{Source: c.gid, Dest: to.dest}), Group: handle == 0, Dest: to.dest}
			ah.Path.set(e.engine, PathAttr{State: to.state})
			e.session.SetAH(uint32(handle), ah)
		}
	})
}

// sendTo posts a datagram with a length in bytes.
func (e *end) sendTo(handle uint32, number wire.QPN, length int) {
	w := ring.Send{Opcode: ib.WRSend, AH: handle, RemoteQPN: number, RemoteQKey: testQKey, SGECount: 1}
	ring.PutSGE(e.send.Put(&w), at(0, length))
	e.send.Publish()
	if e.bell.Ring(e.qp.DoorbellIndex) {
		e.engine.doorbells.call(e.session)
	}
}

// TestWorkersGroup: a packet to a group reaches each member once, whichever engine receives it and whichever engines
// have members, and is in exactly one counter.
func TestWorkersGroup(t *testing.T) {
	const n, packets = 3, 50
	network := link.NewNetwork(1)
	a, b := newCrew(t, network, 1, n, straight), newCrew(t, network, 2, n, straight)
	for _, c := range []*crew{a, b} {
		var members []*QP
		for i, e := range c.ends {
			c.datagrams(e, testGroup)
			if c == a || i > 0 { // engine 0 of b, which receives the packets, has none
				members = append(members, e.qp)
			}
			for r := range packets {
				e.postRecv(uint64(r), at(1<<20, 200))
			}
		}
		c.Do(func() { c.SetGroup(testGroup, members) })
	}
	for range packets {
		a.ends[1].sendTo(0, wire.QPNMulticast, 100)
	}
	got := map[*end]int{}
	roundsUntil(t, func() bool {
		over := true
		for _, e := range append(a.ends[:n:n], b.ends[1:]...) {
			got[e] += len(e.poll())
			over = over && got[e] >= packets
		}
		return over
	}, a, b)
	ofA, ofB := a.balanced(), b.balanced()
	if ofA.Loopback != packets || ofA.Received != packets || ofA.Delivered != n*packets {
		t.Errorf("the sender's card: looped back %d, received %d, delivered %d", ofA.Loopback, ofA.Received, ofA.Delivered)
	}
	if ofB.Received != packets || ofB.Copies != packets || ofB.Delivered != 2*packets || ofB.Dropped() != 0 {
		t.Errorf("the other card: received %d, copies %d, delivered %d, dropped %v", ofB.Received, ofB.Copies, ofB.Delivered, named(&ofB))
	}
	a.Do(func() { a.SetGroup(testGroup, nil) })
	for _, e := range a.engines {
		if len(e.peers.RouteToGroup(testGroup)) != 0 {
			t.Error("an engine remembers a group without members")
		}
	}
}

// TestWorkersFullInbox: senders to an engine that runs no rounds are blocked when its inbox is full. No packet is lost,
// and packets for other engines are not blocked.
func TestWorkersFullInbox(t *testing.T) {
	const packets = 3 * peers.Room
	a := newCrew(t, link.NewNetwork(1), 1, 2, straight)
	for _, e := range a.ends {
		a.datagrams(e, testGroup)
	}
	from, idle := a.ends[0], a.ends[1]
	posted, received := 0, 0
	step := func() {
		for burst := 0; posted < packets && burst < 32 && posted-int(from.engine.counters.Sent) < endDepth/2; burst++ {
			from.sendTo(1, idle.qp.Number, 64)
			posted++
		}
		from.engine.Round()
	}
	for range 1000 {
		step()
	}
	if waiting := int(from.engine.counters.Sent); waiting != peers.Room || posted <= peers.Room {
		t.Fatalf("%d of %d packets wait for an engine that does not run", waiting, posted)
	}
	for r := range endDepth {
		idle.postRecv(uint64(r), at(1<<20, 200))
	}
	roundsUntil(t, func() bool {
		step()
		n := len(idle.poll())
		for received += n; n > 0; n-- {
			idle.postRecv(1, at(1<<20, 200))
		}
		c := a.Counters()
		return int(c.Delivered+c.dropped()) == packets
	}, a)
	if c := a.balanced(); c.Received != packets || c.Delivered+c.Drops[DropNoReceive] != packets {
		t.Errorf("of %d: received %d, delivered %d, dropped %v", packets, c.Received, c.Delivered, named(&c))
	}
}

// TestWorkersRun: every message arrives while workers run, packets are handed over in both cards, paths and addresses
// change continuously, and queue pairs are added and removed.
func TestWorkersRun(t *testing.T) {
	const n, messages, length = 4, 300, 3000
	network := link.NewNetwork(3)
	a, b := newCrew(t, network, 1, n, crossed), newCrew(t, network, 2, n, straight)
	for i := range n {
		a.meetIn(wire.ServiceRC, a.ends[i], b.ends[i], PathOpen)
		b.meetIn(wire.ServiceRC, b.ends[i], a.ends[i], PathOpen)
		a.ends[i].c.Timeout, b.ends[i].c.Timeout = 0, 0 // no packet is lost, however slow the machine is
	}
	a.Start()
	b.Start()
	over := make(chan struct{})
	var changes, programs sync.WaitGroup
	changes.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			b.Do(func() {
				b.SetAddresses([]wire.GID{b.gid, otherGID})
				b.SetPath(b.ends[1].c.Path, PathAttr{State: PathOpen, DestMAC: a.mac, FromMAC: b.mac})
				b.SetGroup(testGroup, []*QP{b.ends[0].qp, b.ends[2].qp})
			})
			extra := NewSession(ring.NewDoorbell(ring.Alloc(ring.DoorbellSize)))
			e := b.Serve(extra)
			e.Do(func() { extra.Remove() })
			b.Counters()
			time.Sleep(100 * time.Microsecond)
		}
	})
	for i := range n {
		programs.Go(func() { a.ends[i].pump(b.ends[i], messages, length) })
	}
	programs.Wait()
	close(over)
	changes.Wait()
	for _, c := range []*crew{a, b} {
		c.Do(func() {}) // no round runs
		c.balanced()
	}
}

// pump sends messages to a peer and waits for each to complete on both sides.
func (e *end) pump(peer *end, messages, length int) {
	for m := range messages {
		peer.postRecv(uint64(m), at(1<<20, length))
		e.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, length))
		e.engine.Wake(e.session)
		for sent, received := false, false; !sent || !received; {
			for _, c := range append(e.poll(), peer.poll()...) {
				if c.Status != ib.WCSuccess {
					e.Errorf("message %d: %+v", m, c)
					return
				}
				sent, received = sent || !c.Opcode.IsRecv(), received || c.Opcode.IsRecv()
			}
			time.Sleep(time.Microsecond)
		}
	}
}

// TestHandedGroupOfMany: a packet to a group with more members than the budget of a round counts once for each member,
// also at an engine to which it was handed over.
func TestHandedGroupOfMany(t *testing.T) {
	const members = receiveBudget + 50
	a := newCrew(t, link.NewNetwork(1), 1, 2, straight)
	for _, e := range a.ends {
		a.datagrams(e, testGroup)
	}
	var attached []*QP
	for i := range members {
		e := *a.ends[1]
		e.makeQueues()
		shape := ring.SendGeometry(endDepth, 4, 64)
		e.qp.Send, _ = ring.NewSendConsumer(ring.Alloc(shape.Size()), shape)
		e.qp.Number, e.qp.DoorbellIndex, e.qp.QKey = wire.QPN(1000+i), uint32(10+i), testQKey
		e.qp.Serve(new(Datagrams))
		e.engine.Do(func() {
			e.engine.AddQP(e.qp)
			e.qp.SetState(ib.QPStateRTS)
		})
		e.postRecv(1, at(1<<20, 200))
		attached = append(attached, e.qp)
	}
	a.Do(func() { a.SetGroup(testGroup, attached) })
	a.ends[0].sendTo(0, wire.QPNMulticast, 100)
	roundsUntil(t, func() bool { return a.Counters().Delivered >= members }, a)
	if c := a.balanced(); c.Delivered != members || c.Received != 1 || c.Copies != members-1 {
		t.Errorf("%+v", c)
	}
}
