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

// many gives both programs so many further connections to each other, with as many READs outstanding as a card has, and
// returns the first's ends. Their peers have answered already.
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

// dead gives the first program so many connections to queue pairs that are not there. Each has packets to send, and waits
// for hours until it sends them again.
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

// died has connections be to peers that have answered before.
func (p *pairOf) died(all []*end) []*end {
	p.a.engine.Do(func() {
		for _, one := range all {
			one.c.flight.Heard()
		}
	})
	return all
}

// exhaust has connections to nobody use up all grants of the first program, and others wait for long.
func (p *pairOf) exhaust(count, length int) (all []*end) {
	all = p.died(p.dead(count, length))
	for p.patient(); p.round() || p.granted(flight.Sends)+maxGrant <= maxFlight; {
	}
	return all
}

// waits has a connection of the first program post what is more than a few packets, and says whether it waits for a grant.
func (p *pairOf) waits(one *end) bool {
	one.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 500_000))
	p.patient()
	p.round()
	return one.c.flight.Waits(flight.Sends)
}

// patient has the first program's connections wait for grants for very long.
func (p *pairOf) patient() { p.a.engine.flights.Patience = time.Hour }

// impatient ends all waits that patient has made long.
func (p *pairOf) impatient() {
	p.a.engine.Do(func() { p.a.engine.flights.Expire(time.Now().Add(2 * time.Hour)) })
}

// granted is how many packets are granted to the first program's connections, or in flight.
func (p *pairOf) granted(k flight.Kind) int { return p.a.session.flights.Granted(k) }

// waiting is how many of them wait.
func (p *pairOf) waiting(k flight.Kind) int { return p.a.session.flights.Waiting(k) }

// Budgets of package flight, in packets.
const (
	maxFlight  = 1024
	maxFrames  = 128
	maxGrant   = 64
	fewPackets = 8
	maxPart    = 256
)

// Many connections of a program take turns: together they have no more on their way than a card may have, each sends many
// packets at a time, and few acknowledgements come. What they write arrives.
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
			t.Fatalf("%d packets on their way, %d granted, of at most %d", flying, granted, maxFlight)
		}
	}
	if most < maxFlight/8 {
		t.Errorf("at most %d packets were on their way", most)
	}
	if !bytes.Equal(p.b.memory[:len(want)], want) {
		t.Error("what has arrived is not what was sent")
	}
	sent, answers := p.a.engine.Counters().Sent, p.b.engine.Counters().Sent
	if answers > sent/10 {
		t.Errorf("%d acknowledgements of %d packets", answers, sent)
	}
	p.nothingIsLeft()
}

// Connections become many while some are in the middle of a message of which no packet has requested an acknowledgement
// yet: their next packet requests it. None waits for its time-out, which is hours here.
func TestSharesBecomeSmallWithinAMessage(t *testing.T) {
	const count, length = 10, 40 * 1024
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(count)
	for _, one := range all {
		one.c.Timeout = 31
		one.c.flight.Reset() // no peer has answered yet
		one.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, length))
	}
	for done := 0; done < count; {
		if !p.round() {
			t.Fatalf("nothing moves after %d of %d requests", done, count)
		}
		for _, one := range all {
			done += len(one.poll())
		}
	}
	p.nothingIsLeft()
}

// nothingIsLeft insists that no packet is granted, and that no connection waits.
func (p *pairOf) nothingIsLeft() {
	p.Helper()
	for _, k := range []flight.Kind{flight.Sends, flight.Reads} {
		if p.granted(k) != 0 || p.waiting(k) != 0 {
			p.Errorf("%d packets are granted at the end, %d connections wait", p.granted(k), p.waiting(k))
		}
	}
}

// Connections whose peers are gone have all grants, and keep them. Others of the program wait for a while, and go on,
// whether the dead are few with much on their way or many with little.
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

// Nobody has to end the wait of those behind dead peers.
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

// Connections whose peers are gone, however many, keep others of the program waiting once, if the peers have answered
// before, or if the first of them were few, and took much.
func TestManyDeadPeers(t *testing.T) {
	const dead = 400
	for _, opcode := range []ib.Opcode{ib.WRRDMAWrite, ib.WRRDMARead} {
		for _, before := range []bool{false, true} {
			p := connect(t, wire.ServiceRC, 1, nil)
			live := p.many(1)[0]
			p.a.engine.Do(func() { live.c.Timeout = 31 }) // hours: nobody is late
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
					t.Fatalf("%v: nobody waits, and %d packets are counted", opcode, p.granted(k))
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

// What connections had that end, in whatever way, those that wait have at once.
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
			p.round() // those that had waited send: only then are they refused
		}
		for p.round() && live.c.flight.Waits(flight.Sends) { // a round's budget may be too little for all
		}
		if waits, granted := live.c.flight.Waits(flight.Sends), p.granted(flight.Sends); waits || granted > maxGrant+live.c.Requester.Flying() {
			t.Errorf("%s: %d packets are granted, it waits: %v", name, granted, waits)
		}
	}
}

// The responses to READs come in turns too, however long the READs are: no more of them are on their way than a card may
// have. Connections notice each other once they send, so some packets are more.
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
			p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: nobody is late, on a slow machine neither
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
				if one.c.deadline.due.IsZero() { // nobody answers those that wait: they are not in flight for long
					p.a.engine.timers.stop(one.c)
				}
			}
			most = max(most, coming)
		}
		if most > row.most || most < min(row.count*row.length/1024, maxFlight)/2 {
			t.Errorf("%d connections, READs of %d bytes: %d packets of responses were on their way", row.count, row.length, most)
		}
		p.nothingIsLeft()
		if !bytes.Equal(p.a.memory[:len(want)], want) {
			t.Error("what has been read is not what was there")
		}
	}
}

// Connections that read much have a part of it each at a time, and keep none waiting that write.
func TestReadsKeepNoWriteWaiting(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(50)
	for i, one := range all {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: nobody is late
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
	for range 100 { // the peer does not run: nothing is answered
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
	if long != 9 || short != 0 || writes != 10 || coming > 2*maxFlight { // the first are few; then those who came first have turns
		t.Errorf("%d of 10 that read much, %d of 30 that read less, %d of 10 that write have sent something; %d packets are coming", long, short, writes, coming)
	}
}

// Those that wait are not in flight for long, since nobody answers them, and are many all the same.
func TestManyThatWait(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(64)
	for _, one := range all {
		one.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, maxPart*1024))
	}
	p.a.engine.Progress()
	for _, one := range all[4:] { // as if few were in flight
		p.a.engine.timers.stop(one.c)
	}
	if flows := p.a.session.flights.Flows(); flows != 4 || !all[63].c.flight.TakesTurns() {
		t.Errorf("%d are in flight, and others wait: %+v", flows, all[63].c.flight)
	}
}

// Many connections that read little all the time keep none waiting that reads much.
func TestManyShortReadsBesideALongOne(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(250)
	for _, one := range all {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: nobody is late
	}
	long, small := all[0], all[1:]
	p.patient()
	for rounds, done := 0, 0; done == 0; rounds++ {
		if rounds > 20_000 {
			t.Fatal("the long READ has not had its turn")
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

// Many connections that write little, of which nothing is acknowledged yet, keep none waiting that writes much.
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

// What is on its way stays counted while a packet is sent again.
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

// A few packets do not wait, whether they are sent or come.
func TestLittleDoesNotWait(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	live := p.many(2)
	for _, one := range live {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: nobody is late
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

// Of a connection that ends, in whatever way, nothing is left that others would wait for.
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
