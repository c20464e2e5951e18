// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// flight runs the engine until it has no more work, and returns the PSNs of the sent packets, and of those that request
// an acknowledgement.
func (x *exchange) flight() (sent, asked []int) {
	x.Helper()
	x.rest()
	for len(x.tap.Packets()) > 0 {
		var p wire.Packet
		if one := <-x.tap.Packets(); !one.Out || wire.Parse(one.Frame, &p) != wire.FaultNone {
			continue
		}
		psn := p.BTH().PSN().Ahead(x.first)
		sent = append(sent, psn)
		if p.BTH().AckReq() {
			asked = append(asked, psn)
		}
	}
	return sent, asked
}

// A long message requests acknowledgements at intervals. A loss halves the window, down to a few packets;
// acknowledgements let it grow again. There are two acknowledgement requests per window.
func TestFlight(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.postAll(posted{o: ib.WRRDMAWrite, length: 2000 * 256})
	next := 0 // the oldest packet that is not acknowledged
	for i, row := range []struct {
		acked, first, window int // in packets; the packets from first to the end of the window are sent
		lost                 bool
		asked                []int
	}{
		{0, 0, 128, false, []int{31, 63, 95, 127}},
		{64, 64, 128, false, []int{95, 127}}, // the others are in flight
		{128, 0, 128, false, []int{31, 63, 95, 127}},
		{0, 0, 64, true, []int{31, 63}},
		{1, 0, 32, true, []int{15, 31}},
		{1, 0, 16, true, []int{7, 15}},
		{1, 0, 8, true, []int{3, 7}},
		{1, 0, 4, true, []int{1, 3}},
		{1, 0, 4, true, []int{1, 3}},
		{4, 0, 5, false, []int{1, 3}},
		{5, 0, 6, false, []int{1, 4}}, // three after the last request
		{6, 0, 7, false, []int{1, 4}},
		{7, 0, 8, false, []int{1, 5}},
		{8, 0, 10, false, []int{2, 7}},
		{10, 0, 12, false, []int{3, 9}},
		{11, 1, 12, false, []int{4, 10}},
	} {
		next += row.acked
		h := answer(wire.PSN(next-1), ackOf)
		if row.lost {
			h = answer(wire.PSN(next), wire.NAKSequence)
		}
		if i > 0 {
			x.say(line{Transport: h})
		}
		sent, asked := x.flight()
		for i := range asked {
			asked[i] -= next
		}
		if len(sent) != row.window-row.first || sent[0] != next+row.first || !slices.Equal(asked, row.asked) {
			t.Errorf("row %d: %d packets from %d on, acknowledgement requests %v", i, len(sent), sent[0]-next, asked)
		}
	}
	if c := x.engine.Counters(); c.SequenceNAKs != 6 || c.SentBytes != 256*c.Sent {
		t.Errorf("%+v", c)
	}
}

// A requester never waits for an acknowledgement that it has not requested: if the window becomes smaller than the
// number of packets in flight, one more packet requests it.
func TestSmallerWindowAsks(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, func(c *Connection) { c.Timeout = 31 }) // hours
	x.postAll(posted{o: ib.WRRDMAWrite, length: 100 * 256})
	x.engine.Do(func() {
		x.engine.round.budget = 20
		x.c.send(&x.engine.tx)
		x.engine.flights.Card = new(atomic.Int32)
		x.engine.flights.Card.Store(1000) // sessions
	})
	sent, asked := x.flight()
	if len(sent) != 21 || !slices.Equal(asked, []int{20}) {
		t.Errorf("sent %v, requested acknowledgements for %v", sent, asked)
	}
	x.say(line{Transport: answer(20, ackOf)})
	if sent, asked := x.flight(); !slices.Equal(sent, []int{21, 22, 23, 24}) || !slices.Equal(asked, []int{22, 24}) {
		t.Errorf("sent %v, requested acknowledgements for %v", sent, asked)
	}
}

// The packets of a READ are sent by the peer: they do not count in the window.
func TestReadsTakeNoWindow(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.postAll(posted{o: ib.WRRDMARead, length: 200 * 256}, posted{o: ib.WRRDMAWrite, length: 150 * 256}, posted{o: ib.WRRDMARead, length: 8})
	if sent, _ := x.flight(); len(sent) != 1+128 || sent[128] != 200+127 {
		t.Errorf("%d packets, %v", len(sent), sent)
	}
	x.say(line{Transport: response(wire.OpReadResponseFirst, 0), length: 256}) // no WRITE has arrived
	if sent, _ := x.flight(); len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
	x.say(line{Transport: response(wire.OpReadResponseFirst, 2), length: 256}) // one is lost
	if sent, _ := x.flight(); len(sent) != 1+64 || sent[0] != 1 || sent[64] != 200+63 {
		t.Errorf("retransmitted: %d packets, %v", len(sent), sent)
	}
}

// A READ behind a retransmitted packet does not enlarge the window.
func TestWindowBeforeAREAD(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.postAll(posted{o: ib.WRRDMAWrite, length: 20 * 256}, posted{o: ib.WRRDMARead, length: 8})
	x.flight()
	for psn, want := range []int{21, 20, 16, 8, 4} { // windows of 64, 32, 16, 8 and 4
		x.say(line{Transport: answer(wire.PSN(psn), wire.NAKSequence)})
		if sent, _ := x.flight(); len(sent) != want {
			t.Errorf("from %d on: sent %v", psn, sent)
		}
	}
}

// A queue pair's turn ends after sendTurn packets or with the round's budget; the queue pair is done when it has no
// more packets.
func TestConnectionsTakeTurns(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	const packets = sendTurn + 20
	x.postAll(posted{o: ib.WRRDMAWrite, length: packets * 256})
	for i, row := range []struct {
		budget, sent int
		moved, done  bool
	}{
		{0, 0, false, false},
		{10, 10, true, false},
		{100, sendTurn, true, false},
		{100, packets - 10 - sendTurn, true, true},
		{100, 0, false, true},
	} {
		x.engine.Do(func() {
			before := x.engine.counters.Sent
			x.engine.round.budget = row.budget
			moved, done := x.c.send(&x.engine.tx)
			sent := int(x.engine.counters.Sent - before)
			if moved != row.moved || done != row.done || sent != row.sent || x.engine.round.budget != row.budget-sent {
				t.Errorf("row %d: %d sent, moved %v, done %v, %d left", i, sent, moved, done, x.engine.round.budget)
			}
		})
	}
}

// A queue pair that has received an RNR NAK does not count as in flight until it sends again.
func TestNotReadyIsNotInFlight(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, func(c *Connection) { c.Timeout = 31 }) // hours
	x.postAll(posted{o: ib.WRSend, length: 8})
	for _, code := range []wire.Syndrome{1, 31} { // 10 µs, 0.5 s
		if x.rest(); x.session.flights.Flows() != 1 {
			t.Errorf("%d are in flight when it has sent", x.session.flights.Flows())
		}
		if x.say(line{Transport: answer(0, wire.SyndromeRNR|code)}); code == 31 && x.session.flights.Flows() != 0 {
			t.Errorf("%d are in flight when the peer is not ready", x.session.flights.Flows())
		}
	}
}

// An RNR NAK is a response: it resets the count of retries after earlier timeouts, however long the RNR wait.
func TestNotReadyIsAnAnswer(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, func(c *Connection) { c.Timeout, c.RetryCnt, c.RNRRetry = 31, 1, 7 }) // hours
	x.postAll(posted{o: ib.WRSend, length: 8})
	x.rest()
	for i := range 5 {
		x.engine.Do(func() {
			x.c.Requester.Expire(time.Now().Add(3 * time.Hour))
			x.c.follow()
			x.engine.runRound()
		})
		x.say(line{Transport: answer(0, wire.SyndromeRNR|1)}) // 10 µs
		for sent := x.engine.Counters().Sent; x.engine.Counters().Sent == sent && x.c.qp.State == ib.QPStateRTS; {
			x.engine.Do(func() { x.engine.runRound() })
		}
		if x.c.qp.State != ib.QPStateRTS {
			t.Fatalf("round %d: %v", i, x.c.qp.State)
		}
	}
}

// A round handles a limited number of expired deadlines; the next round handles the others.
func TestManyTimeOutAtOnce(t *testing.T) {
	const more = 2
	p := connect(t, wire.ServiceRC, 1, nil)
	for i := range sendBudget + more {
		p.a.addQP(wire.QPN(0x1000 + i))
		p.a.meet(p.b, wire.ServiceRC, func(c *Connection) { c.Timeout = 31 }) // 2.4 hours
		p.a.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 6))
	}
	for p.a.engine.Counters().Sent < sendBudget+more {
		p.round()
	}
	p.a.engine.Do(func() {
		e := p.a.engine
		e.round.time = time.Now().Add(3 * time.Hour)
		for i, want := range []uint64{sendBudget, sendBudget + more, sendBudget + more} {
			if some := e.timers.expire(); some != (i < 2) || e.counters.Timeouts != want {
				t.Errorf("call %d: %v, %d in all", i, some, e.counters.Timeouts)
			}
		}
	})
}
