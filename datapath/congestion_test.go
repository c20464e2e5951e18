// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

// controlled returns an exchange of a card with congestion control.
func controlled(t *testing.T, service wire.Service, change func(c *Connection)) *exchange {
	t.Helper()
	x := newExchange(t, service, change)
	p := dcqcn.Defaults()
	x.engine.Do(func() { x.engine.congestion = &p })
	return x
}

// notify returns a CNP to the victim from its peer.
func (x *exchange) notify(change func(p *wire.Path, pkey *wire.PKey)) []byte {
	path, pkey := wire.Path{Source: x.peer.gid, Dest: x.gid, DestMAC: x.mac, SourceMAC: x.peer.mac}, wire.PKeyDefault
	if change != nil {
		change(&path, &pkey)
	}
	template := wire.NewTemplate(path)
	return x.frame[:template.SealCNP(x.frame[:], testQP, testQP, pkey, 0)]
}

// A marked packet causes a CNP to the peer's queue pair, before all other packets; the next CNP follows 50 µs later at
// the earliest.
func TestMarkedPacketIsAnswered(t *testing.T) {
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC} {
		x := controlled(t, service, nil)
		x.template = x.template.ECNCapable()
		for i := range 10 {
			x.postRecv(uint64(i), at(4096, 264))
			frame := x.packet(line{Transport: ask(wire.OpSendOnly, wire.PSN(i)), length: 8})
			if !wire.Mark(frame) {
				t.Fatal("not marked")
			}
			x.take(frame)
		}
		x.rest()
		var p wire.Packet
		cnps := 0
		for len(x.tap.Packets()) > 0 {
			if one := <-x.tap.Packets(); one.Out && wire.Parse(one.Frame, &p) == wire.FaultNone && p.BTH().Opcode() == wire.OpcodeCNP {
				if cnps++; !p.CheckICRC() || p.BTH().DestQP() != testQP || p.Destination() != x.peer.gid {
					t.Errorf("% x", one.Frame)
				}
			}
		}
		c := x.engine.Counters()
		if cnps == 0 || c.CNPSent != uint64(cnps) || c.ECNMarked != 10 || c.Delivered != 10 {
			t.Errorf("%d CNPs; %+v", cnps, c)
		}
	}
	x := newExchange(t, wire.ServiceRC, nil) // congestion control is off
	x.template = x.template.ECNCapable()
	frame := x.packet(line{Transport: ask(wire.OpWriteOnly, 0), length: 8})
	wire.Mark(frame)
	x.take(frame)
	x.rest()
	if c := x.engine.Counters(); c.CNPSent != 0 || c.ECNMarked != 1 {
		t.Errorf("%+v", c)
	}
}

// Only notifications from the peer reduce a connection's rate. They do so in every state that receives packets, and
// have no other effect.
func TestWhoNotifies(t *testing.T) {
	for name, row := range map[string]struct {
		change func(p *wire.Path, pkey *wire.PKey)
		drop   Drop
	}{
		"the peer":              {nil, DropNone},
		"a stranger":            {func(p *wire.Path, _ *wire.PKey) { p.Source[15] = 77 }, DropNotPeer},
		"the peer's other side": {func(p *wire.Path, _ *wire.PKey) { p.Source[14]++ }, DropNotPeer},
		"another partition":     {func(_ *wire.Path, k *wire.PKey) { *k = 0x8001 }, DropPKey},
	} {
		for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceXRC} {
			for _, state := range []ib.QPState{ib.QPStateReset, ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS, ib.QPStateSQD, ib.QPStateSQE, ib.QPStateErr} {
				x := controlled(t, service, nil)
				x.engine.Do(func() { x.qp.SetState(ib.QPStateReset) })
				x.qp.State = state
				want := row.drop
				if !state.Receives() {
					want = DropQPState
				}
				x.take(x.notify(row.change))
				c := x.engine.Counters()
				if slowed := x.c.flow.Slowed(); slowed != (want == DropNone) || want != DropNone && c.Drops[want] != 1 || c.Dropped()+c.CNPHandled != 1 {
					t.Errorf("%s, %v, %v: slowed: %v; %v", name, service, state, slowed, named(&c))
				}
			}
		}
	}
}

// Random notifications, from any sender, in any state, only reduce the rate.
func FuzzCNP(f *testing.F) {
	f.Add([]byte{0x81, 0x40, 0xFF, 0xFF, 0x40, 0, 1, 2, 0, 0, 0, 0}, uint8(3), uint8(0))
	f.Add([]byte{0x81, 0x73, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x80, 1, 2, 3}, uint8(6), uint8(1))
	f.Fuzz(func(t *testing.T, bth []byte, state, service uint8) {
		x := controlled(t, []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceXRC}[service%3], nil)
		x.qp.State = ib.QPState(state % 7)
		frame := append([]byte(nil), x.notify(nil)...)
		at := x.template.HeaderLen()
		copy(frame[at:at+wire.BTHLen], bth)
		frame[at] = byte(wire.OpcodeCNP)
		before := x.c.Requester.PSN
		x.take(frame)
		c := x.engine.Counters()
		if c.Received != 1 || c.Delivered+c.dropped() != 1 || c.CNPHandled != c.Delivered || x.c.Requester.PSN != before || x.qp.State != ib.QPState(state%7) {
			t.Errorf("%+v", c)
		}
	})
}

// A flood of notifications in both directions reduces the rate to the minimum. All requests complete nevertheless, even
// with a short timeout.
func TestFloodOfNotifications(t *testing.T) {
	for _, row := range []struct {
		service    wire.Service
		timeout    uint8
		operations []ib.Opcode
	}{
		{wire.ServiceRC, 1, []ib.Opcode{ib.WRRDMAWrite, ib.WRSend, ib.WRRDMAWrite}},
		{wire.ServiceRC, 16, []ib.Opcode{ib.WRRDMARead, ib.WRSend}},
		{wire.ServiceUC, 0, []ib.Opcode{ib.WRRDMAWrite, ib.WRSend}},
	} {
		service, operations, parameters := row.service, row.operations, dcqcn.Defaults()
		p := connect(t, service, 1, func(c *Connection) { c.Timeout = row.timeout })
		for _, e := range []*end{p.a, p.b} {
			e.engine.Do(func() { e.engine.congestion = &parameters })
			for i := range 8 {
				e.postRecv(uint64(i), at(1<<20, 1<<20))
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		p.a.fill(r, 0, 32<<10)
		flood := func() {
			for _, e := range []*end2{{p.a, p.b}, {p.b, p.a}} {
				e.flooded()
			}
		}
		for p.a.c.flow.Rate() > float64(parameters.MinRate) || p.b.c.flow.Rate() > float64(parameters.MinRate) {
			flood()
		}
		for _, o := range operations {
			s := to(o, 2<<20)
			if o == ib.WRRDMARead {
				s = to(o, 0)
			}
			p.a.post(s, ring.Atomic{}, at(0, 16<<10))
		}
		done := 0
		for end := time.Now().Add(waittest.Limit); done < len(operations) && time.Now().Before(end); {
			flood()
			p.round()
			for _, c := range p.a.poll() {
				if done++; c.Status != ib.WCSuccess {
					t.Fatalf("%v: %v", service, c.Status)
				}
			}
			p.b.poll()
		}
		a, b := p.a.engine.Counters(), p.b.engine.Counters()
		if done != len(operations) || a.CNPHandled < 10 || b.CNPHandled < 10 || !p.a.c.flow.Slowed() {
			t.Errorf("%v: %d done; %+v", service, done, a)
		}
	}
}

// end2 is an end and its peer.
type end2 struct{ own, peer *end }

// flooded delivers a notification to the end.
func (e *end2) flooded() {
	var frame [256]byte
	template := wire.NewTemplate(wire.Path{Source: e.peer.gid, Dest: e.own.gid, DestMAC: e.own.mac, SourceMAC: e.peer.mac})
	n := template.SealCNP(frame[:], testQP, testQP, wire.PKeyDefault, 0)
	e.own.engine.lease.Lock()
	defer e.own.engine.lease.Unlock()
	e.own.engine.round.time = time.Time{}
	e.own.engine.rx.receive(frame[:n])
}

// On a link that marks packets, connections are notified, reduce their rate, and lose no packets. The tests of package
// dcqcn check the length of the queue in simulated time.
func TestQueueThatMarks(t *testing.T) {
	parameters := dcqcn.Defaults()
	parameters.LineRate = 2e9
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) {
		c.Timeout = 18
		c.Template = c.Template.ECNCapable()
	})
	for _, e := range []*end{p.a, p.b} {
		e.engine.Do(func() { e.engine.congestion = &parameters })
	}
	p.network.Impair(link.Impairment{Rate: 50e6, Mark: 200 * time.Microsecond}) // slower than the race detector
	const messages, length = 200, 16 << 10
	posted, done := 0, 0
	for end := time.Now().Add(waittest.Limit); done < messages && time.Now().Before(end); {
		for ; posted < messages && posted-done < 32; posted++ {
			p.a.post(to(ib.WRRDMAWrite, 2<<20), ring.Atomic{}, at(0, length))
		}
		p.round()
		for _, c := range p.a.poll() {
			if done++; c.Status != ib.WCSuccess {
				t.Fatal(c.Status)
			}
		}
	}
	a, b, marked := p.a.engine.Counters(), p.b.engine.Counters(), p.network.Counters().Marked
	t.Logf("%d marked, %d CNPs sent, %d handled; %+v", marked, b.CNPSent, a.CNPHandled, a.Counters)
	if done != messages || marked == 0 || b.ECNMarked != marked || b.CNPSent == 0 || a.CNPHandled == 0 || a.CNPHandled > b.CNPSent || a.Retransmits != 0 {
		t.Errorf("%d done; %+v; %+v", done, a, b)
	}
}

// Pacing does not allocate.
func TestPacingAllocatesNothing(t *testing.T) {
	x := controlled(t, wire.ServiceRC, nil)
	c, now := x.c, time.Now()
	a := &x.engine.rx
	a.packet = *packet(t, wire.Transport{Opcode: wire.OpcodeCNP})
	c.Peer = a.packet.Source()
	if n := testing.AllocsPerRun(100, func() {
		x.engine.round.time = now
		if drop := c.receiveCNP(a); drop != DropNone {
			t.Fatal(drop)
		}
		c.flow.Sent(x.engine.congestion, now, 1000)
		c.holds()
		c.expire()
		x.engine.round.turns.remove(x.qp)
		now = now.Add(60 * time.Microsecond)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
