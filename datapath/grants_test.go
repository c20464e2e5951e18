// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// many adds a number of connections between both programs, with the maximum number of outstanding READs, and returns
// the first program's ends. Their peers have responded already.
func (p *pairOf) many(count int) (all []*end) {
	for i := range count {
		number := wire.QPN(0x1000 + i)
		p.a.addQP(number)
		p.b.addQP(number)
		p.a.meet(p.b, wire.ServiceRC, func(c *Connection) { c.PeerQPN, c.Timeout, c.MaxRDAtomic = number, 14, 16 }) // 67 ms
		p.a.c.flight.Heard()
		p.b.meet(p.a, wire.ServiceRC, func(c *Connection) { c.PeerQPN, c.MaxDestRDAtomic = number, 16 })
		one := *p.a
		all = append(all, &one)
	}
	return all
}

// dead adds to the first program a number of connections to queue pairs that do not exist. Each has packets to send,
// and a timeout of hours.
func (p *pairOf) dead(count, length int) (all []*end) {
	for i := range count {
		p.a.addQP(wire.QPN(0x8000 + i))
		p.a.meet(p.b, wire.ServiceRC, func(c *Connection) { c.PeerQPN, c.Timeout = 0x7777, 31 })
		p.a.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, length))
		one := *p.a
		all = append(all, &one)
	}
	return all
}

// died makes connections appear as if their peers had responded before.
func (p *pairOf) died(all []*end) []*end {
	p.a.engine.Do(func() {
		for _, one := range all {
			one.c.flight.Heard()
		}
	})
	return all
}

// exhaust makes connections to dead peers use up all grants of the first program. Other connections then wait, with a
// long patience.
func (p *pairOf) exhaust(count, length int) (all []*end) {
	all = p.died(p.dead(count, length))
	for p.patient(); p.round() || p.granted(flight.Sends)+maxGrant <= maxFlight; {
	}
	return all
}

// waits posts more than a few packets on a connection of the first program, and reports whether it waits for a grant.
func (p *pairOf) waits(one *end) bool {
	one.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 500_000))
	p.patient()
	p.round()
	return one.c.flight.Waits(flight.Sends)
}

// patient makes the first program's connections wait up to an hour for grants.
func (p *pairOf) patient() { p.a.engine.flights.Patience = time.Hour }

// impatient ends the waits prolonged by patient.
func (p *pairOf) impatient() {
	p.a.engine.Do(func() { p.a.engine.flights.Expire(time.Now().Add(2 * time.Hour)) })
}

// granted returns the number of packets that are granted to the first program's connections, or in flight.
func (p *pairOf) granted(k flight.Kind) int { return p.a.session.flights.Granted(k) }

// waiting returns the number of the first program's connections that wait for grants.
func (p *pairOf) waiting(k flight.Kind) int { return p.a.session.flights.Waiting(k) }

// Budgets of package flight, in packets.
const (
	maxFlight  = 1024
	maxFrames  = 128
	maxGrant   = 64
	fewPackets = 8
	maxPart    = 256
)

// Many connections of a program take turns: together they do not exceed the card's limit of packets in flight, each
// sends many packets at a time, and there are few acknowledgements. The written data arrives.
func TestManyTakeTurns(t *testing.T) {
	const count, length, rounds = 64, 100_000, 3
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(count)
	want := p.a.fill(rand.New(rand.NewPCG(1, 2)), 0, count*length)
	for i, one := range all {
		for range rounds {
			one.post(to(ib.WRRDMAWrite, i*length), ring.Atomic{}, at(i*length, length))
			one.post(to(ib.WRRDMARead, i*length), ring.Atomic{}, at(i*length, 8))
		}
	}
	done, most := 0, 0
	for done < 2*count*rounds {
		p.round()
		flying := 0
		for _, one := range all {
			done += len(one.poll())
			if one.c.Requester.InFlight() {
				sent, _ := one.c.Requester.Unanswered()
				flying += sent
			}
		}
		most = max(most, flying)
		if granted := p.granted(flight.Sends); flying > granted+count*fewPackets || granted > maxFlight+count*fewPackets {
			t.Fatalf("%d packets in flight, %d granted, want at most %d", flying, granted, maxFlight)
		}
	}
	if most < maxFlight/8 {
		t.Errorf("at most %d packets were in flight", most)
	}
	if !bytes.Equal(p.b.memory[:len(want)], want) {
		t.Error("the received data differs from the sent data")
	}
	sent, answers := p.a.engine.Counters().Sent, p.b.engine.Counters().Sent
	if answers > sent/10 {
		t.Errorf("%d acknowledgements of %d packets", answers, sent)
	}
	p.nothingIsLeft()
}

// The number of connections grows while some are in the middle of a message whose packets in flight request no
// acknowledgement: the next packet of each requests one. No connection waits for its timeout, which is hours here.
func TestSharesBecomeSmallWithinAMessage(t *testing.T) {
	const count, length = 10, 40 * 1024
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(count)
	for _, one := range all {
		one.c.Timeout = 31
		one.c.flight.Reset() // no peer has responded yet
		one.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, length))
	}
	for done := 0; done < count; {
		if !p.round() {
			t.Fatalf("no progress after %d of %d requests", done, count)
		}
		for _, one := range all {
			done += len(one.poll())
		}
	}
	p.nothingIsLeft()
}

// nothingIsLeft checks that no packet is granted, and that no connection waits.
func (p *pairOf) nothingIsLeft() {
	p.Helper()
	for _, k := range []flight.Kind{flight.Sends, flight.Reads} {
		if p.granted(k) != 0 || p.waiting(k) != 0 {
			p.Errorf("%d packets are granted at the end, %d connections wait", p.granted(k), p.waiting(k))
		}
	}
}

// Connections to dead peers hold all grants. Other connections of the program wait for a while and then continue, both
// beside few dead peers with many packets in flight each and beside many with few each.
func TestTurnsBesideDeadPeers(t *testing.T) {
	for _, row := range []struct{ count, length int }{{40, 1 << 20}, {34, 30 * 1024}, {100, 20 * 1024}} {
		p := connect(t, wire.ServiceRC, 1, nil)
		live := p.many(1)[0]
		p.exhaust(row.count, row.length)
		if !p.waits(live) {
			t.Errorf("%d dead: there was still a grant", row.count)
		}
		p.a.engine.flights.Patience = 0
		p.impatient()
		for len(live.poll()) == 0 {
			p.round()
		}
	}
}

// The wait for grants held by connections to dead peers ends by its own timer, without other events.
func TestWaitBehindDeadPeersEnds(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	live := p.many(1)[0]
	p.died(p.dead(40, 1<<20))
	for p.round() {
	}
	live.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 500_000))
	for len(live.poll()) == 0 {
		p.round()
	}
}

// Any number of connections to dead peers delays the program's other connections only once. This holds if the peers
// have responded before, or if the first few of them held many packets.
func TestManyDeadPeers(t *testing.T) {
	const dead = 400
	for _, opcode := range []ib.Opcode{ib.WRRDMAWrite, ib.WRRDMARead} {
		for _, before := range []bool{false, true} {
			p := connect(t, wire.ServiceRC, 1, nil)
			live := p.many(1)[0]
			p.a.engine.Do(func() { live.c.Timeout = 31 }) // hours: no peer is late
			all := p.dead(dead, 8)
			for _, one := range all {
				p.a.engine.Do(func() { one.c.MaxRDAtomic = 16 })
				for range 3 {
					one.post(to(opcode, 0), ring.Atomic{}, at(0, 1<<20))
				}
			}
			if before {
				p.died(all)
			}
			k := map[ib.Opcode]flight.Kind{ib.WRRDMAWrite: flight.Sends, ib.WRRDMARead: flight.Reads}[opcode]
			p.patient()
			waited := 0
			for posted := false; len(live.poll()) == 0; {
				switch {
				case p.round():
				case !posted:
					live.post(to(opcode, 0), ring.Atomic{}, at(0, 1<<20))
					posted = true
				case p.waiting(k) == 0:
					t.Fatalf("%v: no connection waits, and %d packets are counted", opcode, p.granted(k))
				default:
					if waited++; waited > 1 {
						t.Fatalf("%v, have answered %v: it waits for the second time, with %d packets counted", opcode, before, p.granted(k))
					}
					p.impatient()
				}
			}
		}
	}
}

// When connections end in any way, waiting ones receive their grants immediately.
func TestWhoEndsMakesRoom(t *testing.T) {
	for name, finish := range map[string]func(e *Engine, qp *QP){
		"removed": func(e *Engine, qp *QP) { e.RemoveQP(qp) },
		"RESET":   func(e *Engine, qp *QP) { qp.SetState(ib.QPStateReset) },
		"ERR":     func(e *Engine, qp *QP) { qp.SetState(ib.QPStateErr) },
		"refused": func(e *Engine, qp *QP) {
			c := qp.service.(*Connection)
			c.Requester.Receive(e.round.now(), packet(t, wire.Transport{Opcode: wire.OpAcknowledge, PSN: c.Requester.Oldest(), Syndrome: wire.NAKRemoteAccess}))
			c.follow()
		},
	} {
		p := connect(t, wire.ServiceRC, 1, nil)
		live := p.many(1)[0]
		dead := p.exhaust(40, 1<<20)
		if !p.waits(live) {
			t.Errorf("%s: there was still a grant", name)
		}
		for len(dead) > 0 {
			for _, one := range dead {
				p.a.engine.Do(func() { finish(p.a.engine, one.qp) })
			}
			dead = slices.DeleteFunc(dead, func(one *end) bool { return name == "removed" || one.qp.State != ib.QPStateRTS })
			p.round() // connections that had waited send; only then are they refused
		}
		for p.round() && live.c.flight.Waits(flight.Sends) { // all may need more than the budget of one round
		}
		if waits, granted := live.c.flight.Waits(flight.Sends), p.granted(flight.Sends); waits || granted > maxGrant+live.c.Requester.Flying() {
			t.Errorf("%s: %d packets are granted, it waits: %v", name, granted, waits)
		}
	}
}

// Responses to READs take turns too, also for long READs: they do not exceed the card's limit of packets in flight,
// except by some packets at the beginning, before each connection counts the others.
func TestReadsTakeTurns(t *testing.T) {
	const rounds = 12
	for _, row := range []struct{ count, length, most int }{
		{64, 64 * 1024, 2 * maxFlight},
		{64, maxPart * 1024, 2 * maxFlight},
		{16, 1 << 20, 2 * maxFlight},
		{4, 64 * 1024, 2 * maxFlight},
		{4, 1 << 20, 2 * maxFlight},
		{1, 64 * 1024, maxFlight},
		{1, 1 << 20, maxFlight},
	} {
		p := connect(t, wire.ServiceRC, 4, nil)
		all := p.many(row.count)
		want := p.b.fill(rand.New(rand.NewPCG(1, 2)), 0, row.length)
		for _, one := range all {
			p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: no peer is late, even on a slow machine
			for range rounds {
				one.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, row.length))
			}
		}
		most := 0
		p.patient()
		for done := 0; done < rounds*row.count; {
			p.round()
			coming := 0
			for _, one := range all {
				done += len(one.poll())
				coming += one.c.Requester.Asked()
				if one.c.deadline.due.IsZero() { // without responses it soon does not count as in flight
					p.a.engine.timers.stop(one.c)
				}
			}
			most = max(most, coming)
		}
		if most > row.most || most < min(row.count*row.length/1024, maxFlight)/2 {
			t.Errorf("%d connections, READs of %d bytes: %d response packets were in flight", row.count, row.length, most)
		}
		p.nothingIsLeft()
		if !bytes.Equal(p.a.memory[:len(want)], want) {
			t.Error("the data read differs")
		}
	}
}

// Connections with long READs request one part at a time, and do not delay connections that write.
func TestReadsKeepNoWriteWaiting(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(50)
	for i, one := range all {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: no peer is late
		switch {
		case i < 10:
			one.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 2*maxFlight*1024))
		case i < 40:
			one.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 64*1024))
		default:
			one.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, (fewPackets+1)*1024))
		}
	}
	p.patient()
	for range 100 { // the peer does not run: it sends no responses
		p.a.engine.Progress()
	}
	long, short, writes, coming := 0, 0, 0, 0
	for i, one := range all {
		coming += one.c.Requester.Asked()
		switch c := one.c; {
		case c.Requester.PSN == c.Requester.Oldest():
		case i < 10:
			long++
		case i < 40:
			short++
		default:
			writes++
		}
	}
	// While there are few connections they share the limit directly; later ones take turns.
	if long != 9 || short != 0 || writes != 10 || coming > 2*maxFlight {
		t.Errorf("%d of 10 that read much, %d of 30 that read less, %d of 10 that write have sent something; %d packets are coming", long, short, writes, coming)
	}
}

// Waiting connections get no responses and soon do not count as in flight, but they still count as connections that
// need turns.
func TestManyThatWait(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(64)
	for _, one := range all {
		one.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, maxPart*1024))
	}
	p.a.engine.Progress()
	for _, one := range all[4:] { // only 4 connections count as in flight
		p.a.engine.timers.stop(one.c)
	}
	if flows := p.a.session.flights.Flows(); flows != 4 || !all[63].c.flight.TakesTurns() {
		t.Errorf("%d are in flight, and others wait: %+v", flows, all[63].c.flight)
	}
}

// Many connections with short READs do not delay one with a long READ.
func TestManyShortReadsBesideALongOne(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(250)
	for _, one := range all {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: no peer is late
	}
	long, small := all[0], all[1:]
	p.patient()
	for rounds, done := 0, 0; done == 0; rounds++ {
		if rounds > 20_000 {
			t.Fatal("the long READ had no turn")
		}
		for _, one := range small {
			for one.send.Outstanding(one.polled) < 4 {
				one.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 4*1024))
			}
		}
		if p.round(); rounds == 0 {
			long.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 64*1024))
		}
		for _, one := range small {
			one.poll()
		}
		done = len(long.poll())
	}
}

// Many connections with short, unacknowledged WRITEs do not delay one with a long WRITE.
func TestManyShortWritesBesideALongOne(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	long := p.many(1)[0]
	p.dead(250, fewPackets*1024)
	for p.round() {
	}
	if flows := p.a.session.flights.Flows(); flows != 250 {
		t.Fatalf("of 250 %d have sent something", flows)
	}
	if p.waits(long) {
		t.Errorf("it waits, with %d packets granted", p.granted(flight.Sends))
	}
}

// Packets in flight stay counted during a retransmission.
func TestSentAgainIsCounted(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	one := p.many(1)[0]
	p.a.engine.Do(func() { one.c.Timeout = 31 })
	for range 2 {
		one.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 20*1024))
	}
	p.a.engine.Progress()
	before := p.granted(flight.Reads)
	p.a.engine.Do(func() {
		r := &one.c.Requester
		r.Receive(p.a.engine.round.now(), packet(t, wire.Transport{Opcode: wire.OpReadResponseMiddle, PSN: r.Oldest().Plus(1)}))
		one.c.follow()
	})
	if after := p.granted(flight.Reads); before != 40 || after != before {
		t.Errorf("of %d packets that were to come %d are counted once the first was lost", before, after)
	}
}

// A few packets do not wait for a grant, neither sent packets nor READ responses.
func TestLittleDoesNotWait(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	live := p.many(2)
	for _, one := range live {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: no peer is late
	}
	p.exhaust(40, 1<<20)
	live[0].post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, fewPackets*1024))
	live[1].post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, fewPackets*1024))
	p.round()
	for i, one := range live {
		if c := one.c; c.flight.Waits(flight.Sends) || c.Requester.PSN == c.Requester.Oldest() {
			t.Errorf("connection %d waits", i)
		}
	}
	live[0].post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, fewPackets*1024+1))
	if p.round(); !live[0].c.flight.Waits(flight.Sends) {
		t.Error("more than a few packets went without a grant")
	}
}

// When a connection ends in any way, none of its packets stay counted: other connections do not wait for them.
func TestGrantsEnd(t *testing.T) {
	for seed := range uint64(20) {
		p := connect(t, wire.ServiceRC, 1, nil)
		r := rand.New(rand.NewPCG(seed, 3))
		all := append(p.many(20), p.dead(40, 300_000)...)
		for len(all) > 0 {
			for range r.IntN(20) {
				p.round()
			}
			i := r.IntN(len(all))
			one := all[i]
			switch r.IntN(5) {
			case 0, 1:
				if one.send.Outstanding(one.polled) < endDepth {
					opcode := []ib.Opcode{ib.WRRDMAWrite, ib.WRRDMARead}[r.IntN(2)]
					one.post(to(opcode, 0), ring.Atomic{}, at(0, r.IntN(400_000)))
				}
				continue
			case 2:
				p.a.engine.Do(func() { one.qp.SetState(ib.QPStateErr) })
			case 3:
				p.a.engine.Do(func() { one.qp.SetState(ib.QPStateReset) })
			case 4:
				p.a.engine.Do(func() { p.a.engine.RemoveQP(one.qp) })
			}
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		}
		p.nothingIsLeft()
	}
}
