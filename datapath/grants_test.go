package datapath

import (
	"bytes"
	"math/rand/v2"
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
		p.a.meet(p.b, wire.ServiceRC, func(c *Connection) { c.PeerQPN = number })
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
func (p *pairOf) exhaust() {
	p.dead(40, 1<<20)
	for p.round() || p.a.session.first == nil {
	}
	s := p.a.session
	if s.since = time.Now().Add(time.Hour); s.granted < maxFlight {
		p.Fatalf("%d packets are granted", s.granted)
	}
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
		}
	}
	s, done, most := p.a.session, 0, 0
	for done < count*rounds {
		p.round()
		flying := 0
		for _, one := range all {
			done += len(one.poll())
			if one.c.Requester.InFlight() {
				flying += one.c.Requester.Flying()
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
	if answers > sent/16 {
		t.Errorf("%d acknowledgements of %d packets", answers, sent)
	}
	if s.granted != 0 || s.first != nil {
		t.Errorf("%d packets are granted at the end, %v waits", s.granted, s.first)
	}
}

// Connections whose peers are gone have all grants, and keep them. Others of the program wait for a while, and go on.
func TestTurnsBesideDeadPeers(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	live := p.many(1)[0]
	p.exhaust()
	live.post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, 500_000))
	if p.round(); !live.c.grant.waits {
		t.Error("there was still a grant")
	}
	p.a.session.since = time.Now()
	p.a.engine.timers.follow(p.a.session.first)
	for len(live.poll()) == 0 {
		p.round()
	}
}

// A few packets do not wait, and neither does a READ.
func TestLittleDoesNotWait(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	live := p.many(2)
	for _, one := range live {
		p.a.engine.Do(func() { one.c.Timeout = 31 }) // hours: nobody is late
	}
	p.exhaust()
	live[0].post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, fewPackets*1024))
	live[1].post(to(ring.WRRDMARead, 0), ring.Atomic{}, at(0, 500_000))
	p.round()
	for i, one := range live {
		if c := one.c; c.grant.waits || c.Requester.PSN == c.Requester.Oldest() {
			t.Errorf("connection %d waits", i)
		}
	}
	live[0].post(to(ring.WRRDMAWrite, 0), ring.Atomic{}, at(0, fewPackets*1024+1))
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
		if s := p.a.session; s.granted != 0 || s.first != nil || s.last != nil {
			t.Fatalf("seed %d: %d packets are granted, %p and %p wait", seed, s.granted, s.first, s.last)
		}
	}
}
