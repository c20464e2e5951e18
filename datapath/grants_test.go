package datapath

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// many gives both programs so many further connections to each other, and returns the first's ends.
func (p *pairOf) many(count int) (all []*end) {
	for i := range count {
		number := wire.QPN(0x1000 + i)
		p.a.addQP(number)
		p.b.addQP(number)
		p.a.meet(p.b, wire.ServiceRC, func(c *Connection) { c.PeerQPN, c.Timeout = number, 14 }) // 67 ms
		p.b.meet(p.a, wire.ServiceRC, func(c *Connection) { c.PeerQPN = number })
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
		p.a.post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, length))
		one := *p.a
		all = append(all, &one)
	}
	return all
}

// exhaust has connections to nobody use up all grants of the first program, and others wait for long.
func (p *pairOf) exhaust(count, length int) (all []*end) {
	all = p.dead(count, length)
	for s := &p.a.session.grants; p.round() || s.granted+maxGrant <= maxFlight; s.since = time.Now().Add(time.Hour) {
	}
	return all
}

// waits has a connection of the first program post what is more than a few packets, and says whether it waits for a grant.
func (p *pairOf) waits(one *end) bool {
	one.post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, 500_000))
	p.a.session.grants.since = time.Now().Add(time.Hour)
	p.round()
	return one.c.grant.waits
}

// Many connections of a program take turns: together they have no more on their way than a card may have, each sends many
// packets at a time, and few acknowledgements come. What they write arrives.
func TestManyTakeTurns(t *testing.T) {
	const count, length, rounds = 64, 100_000, 3
	p := connect(t, wire.ServiceRC, 1, nil)
	all := p.many(count)
	want := p.a.fill(rand.New(rand.NewPCG(1, 2)), 0, count*length)
	for i, one := range all {
		for range rounds {
			one.post(to(ring.WRRDMAWrite, i*length), ring.Atomic{}, at(i*length, length))
			one.post(to(ring.WRRDMARead, i*length), ring.Atomic{}, at(i*length, 8)) // takes no room
		}
	}
	s, done, most := &p.a.session.grants, 0, 0
	for done < 2*count*rounds {
		p.round()
		flying := 0
		for _, one := range all {
			done += len(one.poll())
			if one.c.Requester.InFlight() {
				flying += one.c.Requester.Unanswered()
			}
		}
		most = max(most, flying)
		if flying > s.granted || s.granted > maxFlight+count*fewPackets {
			t.Fatalf("%d packets on their way, %d granted, of at most %d", flying, s.granted, maxFlight)
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
	if s.granted != 0 || s.first != nil {
		t.Errorf("%d packets are granted at the end, %v waits", s.granted, s.first)
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
		p.a.session.grants.since = time.Now()
		p.a.engine.timers.follow(p.a.session.grants.first)
		for len(live.poll()) == 0 {
			p.round()
		}
	}
}

// What connections had that end, in whatever way, those that wait have at once.
func TestWhoEndsMakesRoom(t *testing.T) {
	for name, finish := range map[string]func(e *Engine, qp *QP){
		"removed": func(e *Engine, qp *QP) { e.RemoveQP(qp) },
		"RESET":   func(e *Engine, qp *QP) { e.SetState(qp, ring.QPStateReset) },
		"ERR":     func(e *Engine, qp *QP) { e.SetState(qp, ring.QPStateErr) },
		"refused": func(e *Engine, qp *QP) {
			c := qp.service.(*Connection)
			c.Requester.Receive(e.now(), packet(t, wire.Transport{Opcode: wire.OpAcknowledge, PSN: c.Requester.Oldest(), Syndrome: wire.NAKRemoteAccess}))
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
			dead = slices.DeleteFunc(dead, func(one *end) bool { return name == "removed" || one.qp.State != ring.QPStateRTS })
			p.round() // those that had waited send: only then are they refused
		}
		for p.round() && live.c.grant.waits { // a round's budget may be too little for all
		}
		if s := &p.a.session.grants; live.c.grant.waits || s.granted > maxGrant+live.c.Requester.Flying() {
			t.Errorf("%s: %d packets are granted, it waits: %v", name, s.granted, live.c.grant.waits)
		}
	}
}

// A few packets do not wait, and neither does a READ.
func TestLittleDoesNotWait(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	live := p.many(2)
	for _, one := range live {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: nobody is late
	}
	p.exhaust(40, 1<<20)
	live[0].post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, fewPackets*1024))
	live[1].post(to(ring.WRRDMARead, 0), ring.Atomic{}, at(0, 500_000))
	p.round()
	for i, one := range live {
		if c := one.c; c.grant.waits || c.Requester.PSN == c.Requester.Oldest() {
			t.Errorf("connection %d waits", i)
		}
	}
	live[0].post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, fewPackets*1024+1))
	p.a.session.grants.since = time.Now().Add(time.Hour)
	if p.round(); !live[0].c.grant.waits {
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
					one.post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, r.IntN(200_000)))
				}
				continue
			case 2:
				p.a.engine.Do(func() { p.a.engine.SetState(one.qp, ring.QPStateErr) })
			case 3:
				p.a.engine.Do(func() { p.a.engine.SetState(one.qp, ring.QPStateReset) })
			case 4:
				p.a.engine.Do(func() { p.a.engine.RemoveQP(one.qp) })
			}
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
		}
		if s := &p.a.session.grants; s.granted != 0 || s.first != nil || s.last != nil {
			t.Fatalf("seed %d: %d packets are granted, %p and %p wait", seed, s.granted, s.first, s.last)
		}
	}
}
