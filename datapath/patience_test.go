// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// If the peer does not respond, the request fails after all retries, and not earlier. A requester waits retry_cnt+1
// times, each time between one and four times the timeout (IBA 9.7.6.1.3).
func TestPeerIsSilent(t *testing.T) {
	const retries, timeout = 3, 8
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.RetryCnt, c.Timeout = retries, timeout })
	p.network.Impair(link.Impairment{Loss: 1})
	start := time.Now()
	p.a.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 100))
	p.a.post(to(ib.WRSend, 0), ring.Atomic{})
	ofA, _ := p.await(2, 0)
	expect(t, ofA, ib.WCRetryExcErr, ib.WCWRFlushErr)
	c := p.a.engine.Counters()
	if least := (retries + 1) * wire.AckTimeout(timeout); time.Since(start) < least || c.Timeouts != retries+1 || c.Retransmits != retries*2 {
		t.Errorf("failed after %v, want at least %v: %d timeouts, %d retransmissions", time.Since(start), least, c.Timeouts, c.Retransmits)
	}
	if !slices.Equal(p.a.states, []ib.QPState{ib.QPStateErr}) || !p.a.engine.timers.empty() {
		t.Errorf("states %v, timers %v", p.a.states, p.a.engine.timers.heap)
	}
}

// If the peer has no receive request, the request fails after rnr_retry retries, or is retried without limit if
// rnr_retry is 7.
func TestPeerIsNotReady(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.RNRRetry = 2 })
	p.a.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 3000))
	ofA, _ := p.await(1, 0)
	expect(t, ofA, ib.WCRNRRetryExcErr)
	if c := p.a.engine.Counters(); c.RNRNAKs != 3 {
		t.Errorf("%+v", c)
	}

	p = connect(t, wire.ServiceRC, 1, nil)
	p.a.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 3000))
	p.a.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 5))
	for p.a.engine.Counters().RNRNAKs < 12 { // more than 7, which means no limit
		p.round()
	}
	p.b.postRecv(1, at(0, 4000))
	p.b.postRecv(2, at(0, 4000))
	ofA, ofB := p.await(2, 2)
	expect(t, ofA, ib.WCSuccess, ib.WCSuccess)
	expect(t, ofB, ib.WCSuccess, ib.WCSuccess)
}

// In SQD, requests begun are finished, and the others wait for RTS.
func TestConnectionDrains(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.NotifyDrained = true })
	for i := range 100 {
		p.a.post(to(ib.WRRDMAWrite, i*4000), ring.Atomic{}, at(0, 4000))
	}
	p.round()
	p.a.engine.Do(func() { p.a.qp.SetState(ib.QPStateSQD) })
	begun := p.a.c.Requester.Begun()
	for len(p.a.events) == 0 {
		p.round()
	}
	if done := len(p.a.poll()); begun == 0 || done < int(begun) || done == 100 || !slices.Equal(p.a.events, []ib.EventType{ib.EventSQDrained}) {
		t.Fatalf("%d were begun, %d finished: %v", begun, done, p.a.events)
	}
	for range 100 {
		p.round()
	}
	if all := p.a.poll(); len(all) != 0 {
		t.Errorf("in SQD: %+v", all)
	}
	p.a.engine.Do(func() { p.a.qp.SetState(ib.QPStateRTS) })
	p.await(100-int(p.a.polled), 0)
}

// A fenced request begins when the earlier READs are complete, and the number of outstanding READs is limited.
func TestFenceAndReadLimit(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.MaxRDAtomic = 2 })
	for i := range 6 {
		p.a.post(to(ib.WRRDMARead, i*3000), ring.Atomic{}, at(i*3000, 3000))
	}
	fenced := to(ib.WRRDMAWrite, 0)
	fenced.Flags |= ib.SendFence
	p.a.post(fenced, ring.Atomic{}, at(0, 10))
	tap, sent := NewTap(TapFilter{}), map[wire.Opcode]map[wire.PSN]bool{wire.OpReadRequest: {}, wire.OpWriteOnly: {}}
	p.a.engine.Do(func() { p.a.engine.taps.add(tap) })
	var all []ring.CQE
	for len(all) < 7 {
		p.round()
		all = append(all, p.a.poll()...)
		for len(tap.Packets()) > 0 {
			var one wire.Packet
			if wire.Parse((<-tap.Packets()).Frame, &one) == wire.FaultNone && sent[one.BTH().Opcode()] != nil {
				sent[one.BTH().Opcode()][one.BTH().PSN()] = true
			}
		}
		if reads := len(sent[wire.OpReadRequest]); reads > len(all)+2 || len(sent[wire.OpWriteOnly]) > 0 && len(all) < 6 {
			t.Fatalf("%d READs and %d WRITEs are sent, %d requests completed", reads, len(sent[wire.OpWriteOnly]), len(all))
		}
	}
	expect(t, all, slices.Repeat([]ib.WCStatus{ib.WCSuccess}, 7)...)
}

// A queue pair can be connected to itself.
func TestConnectedToItself(t *testing.T) {
	network := link.NewNetwork(1)
	e := newEnd(t, network, 1)
	e.meet(e, wire.ServiceRC, nil)
	e.engine.Do(func() { e.c.Path.set(e.engine, PathAttr{State: PathLocal}) })
	p := &pairOf{T: t, network: network, a: e, b: newEnd(t, network, 2)}
	copy(e.memory, "to itself")
	e.postRecv(1, at(5000, 100))
	e.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 9))
	e.post(to(ib.WRRDMAWrite, 6000), ring.Atomic{}, at(0, 9))
	e.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(7000, 9))
	all, _ := p.await(4, 0)
	expect(t, all, ib.WCSuccess, ib.WCSuccess, ib.WCSuccess, ib.WCSuccess)
	for _, from := range []int{5000, 6000, 7000} {
		if got := string(e.memory[from : from+9]); got != "to itself" {
			t.Errorf("at %d: %q", from, got)
		}
	}
}

// If the memory of a request is deregistered while it is sent, the request fails and later ones are flushed.
func TestMemoryIsTakenAway(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	p.a.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 1<<20))
	p.a.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 10))
	for range 3 {
		p.round()
	}
	p.a.engine.Do(func() { p.a.session.ClearKey(testKey(1)) })
	ofA, _ := p.await(2, 0)
	expect(t, ofA, ib.WCLocProtErr, ib.WCWRFlushErr)

	p = connect(t, wire.ServiceRC, 1, nil)
	p.a.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 1<<20))
	for range 3 {
		p.round()
	}
	p.b.engine.Do(func() { p.b.session.ClearKey(testKey(1)) })
	ofA, _ = p.await(1, 0)
	expect(t, ofA, ib.WCRemAccessErr)
	if !slices.Equal(p.b.events, []ib.EventType{ib.EventQPAccessErr}) || !slices.Equal(p.b.states, []ib.QPState{ib.QPStateErr}) {
		t.Errorf("at the peer: %v, %v", p.b.events, p.b.states)
	}
}

// Timers expire in the order of their times, however often they are set and cleared.
func TestTimers(t *testing.T) {
	var all deadlines
	start := time.Unix(1000, 0)
	qps := make([]*Connection, 50)
	for i := range qps {
		qps[i] = new(Connection)
		qps[i].flight.Open(new(flight.Scheduler), new(flight.Tenant), qps[i])
		all.set(qps[i], start.Add(time.Duration((i*37)%50)*time.Second))
	}
	all.clear(qps[3])
	all.stop(qps[4])
	all.set(qps[5], start.Add(-time.Second))
	all.set(qps[6], start.Add(time.Hour))
	var last time.Time
	for n := 0; n < 47; n++ {
		qp := all.next(start.Add(time.Minute))
		if qp == nil || qp == qps[3] || qp == qps[4] || qp == qps[6] || n == 0 && qp != qps[5] {
			t.Fatalf("%d: %v", n, qp)
		}
		at := start.Add(time.Duration((slices.Index(qps, qp)*37)%50) * time.Second)
		if qp != qps[5] && at.Before(last) {
			t.Errorf("%v after %v", at, last)
		} else if qp != qps[5] {
			last = at
		}
	}
	if qp := all.next(start.Add(time.Minute)); qp != nil {
		t.Errorf("%v is early", qp)
	}
	if qp := all.next(start.Add(2 * time.Hour)); qp != qps[6] || !all.empty() {
		t.Errorf("%v, %d left", qp, len(all.heap))
	}
}

// A message is acknowledged even if its receiver ends the queue pair as soon as it has received the message.
func TestLastMessageIsAcknowledged(t *testing.T) {
	for _, end := range []func(e *end){
		func(e *end) { e.engine.RemoveQP(e.qp) },
		func(e *end) { e.qp.SetState(ib.QPStateReset) },
	} {
		p := connect(t, wire.ServiceRC, 1, nil)
		p.b.postRecv(1, at(0, 10))
		p.a.post(to(ib.WRSend, 0), ring.Atomic{}, at(0, 10))
		var came []ring.CQE
		for len(came) == 0 {
			p.round()
			came = p.b.poll()
		}
		p.b.engine.Do(func() { end(p.b) })
		ofA, _ := p.await(1, 0)
		expect(t, ofA, ib.WCSuccess)
	}
}

// If a connection's completions overrun its CQ, the connection ends, whatever requests are outstanding.
func TestConnectionOverrunsItsCQ(t *testing.T) {
	for _, o := range []ib.Opcode{ib.WRSend, ib.WRRDMAWrite, ib.WRRDMARead, ib.WRAtomicFetchAndAdd} {
		p := connect(t, wire.ServiceRC, 1, nil)
		g := ring.CompletionGeometry(2)
		memory := ring.Alloc(g.Size())
		overruns := 0
		producer, err := ring.NewCompletionProducer(memory, g)
		if err != nil {
			t.Fatal(err)
		}
		cq := &CQ{Queue: producer, Wake: func() {}, Notify: func() {}, QPs: map[*QP]struct{}{p.a.qp: {}}, NoteOverrun: func() { overruns++ }}
		p.a.engine.Do(func() { p.a.qp.SendCQ = cq })
		for i := range 12 {
			p.b.postRecv(uint64(i), at(0, 8))
			p.a.post(to(o, 0), ring.Atomic{}, at(0, 8))
			if i%3 == 2 { // READs and WRITEs alternate, so that a response acknowledges others
				p.a.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 8))
			}
		}
		for p.a.qp.State != ib.QPStateErr {
			p.round()
		}
		for p.round() {
		}
		if overruns != 1 || p.a.c.Requester.Begun() != 0 || !p.a.engine.timers.empty() {
			t.Errorf("%d overruns, %d requests are left, timers %v", overruns, p.a.c.Requester.Begun(), p.a.engine.timers.heap)
		}
	}
}

// A message from a queue pair to itself may overrun the CQ of its own completion.
func TestOwnMessageOverrunsTheCQ(t *testing.T) {
	for _, service := range []wire.Service{wire.ServiceUC, wire.ServiceRC} {
		e := newEnd(t, link.NewNetwork(1), 1)
		e.meet(e, service, nil)
		g := ring.CompletionGeometry(1)
		producer, err := ring.NewCompletionProducer(ring.Alloc(g.Size()), g)
		if err != nil {
			t.Fatal(err)
		}
		cq := &CQ{Queue: producer, Wake: func() {}, Notify: func() {}, QPs: map[*QP]struct{}{e.qp: {}}, NoteOverrun: func() {}}
		e.engine.Do(func() {
			e.c.Path.set(e.engine, PathAttr{State: PathLocal})
			e.qp.SendCQ, e.qp.RecvCQ = cq, cq
		})
		for i := range 4 {
			e.postRecv(uint64(i), at(0, 10))
			e.post(ring.SendConnected{Opcode: ib.WRSend}, ring.Atomic{}, at(0, 10)) // unsignaled: receives overrun the CQ
		}
		for e.qp.State != ib.QPStateErr {
			e.engine.Do(func() { e.engine.runRound() })
		}
		if e.c.Requester.Begun() != 0 {
			t.Errorf("%v: %d requests are left", service, e.c.Requester.Begun())
		}
	}
}

// Packets that exceed the interface's current MTU are not sent. The request fails as on a path that loses the packets,
// and one event reports the cause.
func TestConnectionIsLongerThanThePort(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.RetryCnt = 1 })
	p.a.engine.Do(func() { p.a.engine.tables.setMTU(wire.MTU512) })
	p.a.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 512))
	p.a.post(to(ib.WRRDMAWrite, 0), ring.Atomic{}, at(0, 513))
	ofA, _ := p.await(2, 0)
	expect(t, ofA, ib.WCSuccess, ib.WCRetryExcErr)
	if c := p.a.engine.Counters(); c.Drops[DropPathMTU] != 2 || !slices.Equal(p.a.events, []ib.EventType{ib.EventPathMigErr}) {
		t.Errorf("%+v, events %v", c, p.a.events)
	}
}
