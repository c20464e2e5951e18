// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/wire/wiretest"
	"github.com/roced/roced/verbs/ib"
)

// sent parses the only sent frame, and checks its ICRC.
func (r *rig) sent() *wire.Packet {
	r.Helper()
	if len(r.link.out) != 1 {
		r.Fatalf("%d frames went out", len(r.link.out))
	}
	var p wire.Packet
	if fault := wire.Parse(r.link.out[0], &p); fault != wire.FaultNone {
		r.Fatalf("malformed frame sent: %v", fault)
	}
	if !p.CheckICRC() {
		r.Fatal("wrong ICRC in the sent frame")
	}
	return &p
}

func TestSend(t *testing.T) {
	r := newRig(t)
	copy(r.memory, "hello, ")
	copy(r.memory[slotLen:], "world")
	r.qp.SetPSN(0xFFFFFF)
	r.postSend(ring.Send{ID: 4, Opcode: ib.WRSendWithImm, Flags: ib.SendSignaled | ib.SendSolicited, Imm: 7}, piece(0, 7), piece(slotLen, 5))
	r.run()
	p := r.sent()
	if string(p.Payload()) != "hello, world" || p.Imm() != 7 || p.Source() != ownGID || p.Destination() != peerGID {
		t.Errorf("payload %q, imm %d, %v to %v", p.Payload(), p.Imm(), p.Source(), p.Destination())
	}
	b, d := p.BTH(), p.DETH()
	if b.DestQP() != peerQP || d.SrcQP() != testQP || d.QKey() != testQKey || b.PSN() != 0xFFFFFF || !b.Solicited() || b.PKey() != wire.PKeyDefault {
		t.Errorf("BTH % x, DETH % x", []byte(b), []byte(d))
	}
	if r.qp.PSN() != 0 {
		t.Errorf("got next PSN %#x, want 0", r.qp.PSN())
	}
	want := ring.CQE{ID: 4, Opcode: ib.WCSend, QPN: testQP, Token: 77}
	if got := r.completions(); len(got) != 1 || got[0] != want {
		t.Errorf("completions %+v, want %+v", got, want)
	}
	if r.link.flushes != 1 {
		t.Errorf("got %d kicks for one burst", r.link.flushes)
	}
}

// TestSendPosted: requests posted before a command are sent before it, even if no worker runs. SendPosted does not wait
// if the link is full or the queue pair is in SQD.
func TestSendPosted(t *testing.T) {
	r := newRig(t)
	left := func(want int) {
		t.Helper()
		r.engine.SendPosted(r.session)
		if got := len(r.link.out); got != want {
			t.Errorf("got %d sent packets, want %d", got, want)
		}
	}
	const posted = 4
	for range posted {
		r.postSend(ring.Send{Opcode: ib.WRSend}, piece(0, 7))
	}
	left(posted)
	r.postSend(ring.Send{Opcode: ib.WRSend}, piece(0, 7))
	r.link.full = true
	left(posted)
	r.link.full = false
	r.engine.Do(func() { r.qp.SetState(ib.QPStateSQD) })
	left(posted)
}

func TestSendInline(t *testing.T) {
	r := newRig(t)
	data := r.send.Put(&ring.Send{Opcode: ib.WRSend, Flags: ib.SendInline, InlineLen: 5, RemoteQPN: peerQP})
	copy(data, "small")
	r.send.Publish()
	r.doorbell.Ring(3)
	r.run()
	if got := r.sent().Payload(); string(got) != "small" {
		t.Errorf("payload %q", got)
	}
}

func TestQKeyOfTheQueuePair(t *testing.T) {
	r := newRig(t)
	s := ring.Send{Opcode: ib.WRSend, RemoteQPN: peerQP, RemoteQKey: wire.QKeyPrivileged}
	r.send.Put(&s)
	r.send.Publish()
	r.doorbell.Ring(3)
	r.run()
	if got := r.sent().DETH().QKey(); got != testQKey {
		t.Errorf("Q_Key %v, want the queue pair's own", got)
	}
}

func TestUnsignaledSendsAreSilent(t *testing.T) {
	r := newRig(t)
	for range 3 * rigDepth {
		r.postSend(ring.Send{})
		r.run()
	}
	if got := r.completions(); got != nil {
		t.Errorf("completions %v", got)
	}
	if n := r.send.Outstanding(0); n != 0 {
		t.Errorf("%d slots are still taken", n)
	}
}

// A local error completes with its status, signaled or not, stops the send queue (SQE), and flushes later requests. No
// packet is sent, and receiving is not affected.
func TestLocalErrors(t *testing.T) {
	big := make([]ib.SGE, 2)
	for i := range big {
		big[i] = piece(0, 513)
	}
	rows := []struct {
		name string
		send ring.Send
		sges []ib.SGE
		want ib.WCStatus
	}{
		{"no such operation", ring.Send{Opcode: 9}, nil, ib.WCLocQPOpErr},
		{"no such address handle", ring.Send{AH: 1000}, nil, ib.WCLocQPOpErr},
		{"address handle that was closed", ring.Send{AH: 4}, nil, ib.WCLocQPOpErr},
		{"address handle of another PD", ring.Send{AH: 2}, nil, ib.WCLocQPOpErr},
		{"longer than the MTU", ring.Send{}, big, ib.WCLocLenErr},
		{"more inline than fits", ring.Send{Flags: ib.SendInline, InlineLen: 1 << 20}, nil, ib.WCLocLenErr},
		{"unknown lkey", ring.Send{}, []ib.SGE{{Length: 1, LKey: testKey(50)}}, ib.WCLocProtErr},
		{"lkey past all tables", ring.Send{}, []ib.SGE{{Length: 1, LKey: 0xFFFFFFFF}}, ib.WCLocProtErr},
		{"memory of another PD", ring.Send{}, []ib.SGE{{Length: 1, LKey: testKey(3)}}, ib.WCLocProtErr},
		{"second SGE past the end", ring.Send{}, []ib.SGE{piece(0, 1), {Addr: 4 * slotLen, Length: 1, LKey: testKey(1)}}, ib.WCLocProtErr},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			row.send.ID = 1
			r.postSend(row.send, row.sges...)
			r.postSend(ring.Send{ID: 2})
			r.run()
			got := r.completions()
			if len(got) != 2 || got[0].ID != 1 || got[0].Status != row.want || got[1].ID != 2 || got[1].Status != ib.WCWRFlushErr {
				t.Fatalf("completions %+v", got)
			}
			if len(r.link.out) != 0 || len(r.states) != 1 || r.states[0] != ib.QPStateSQE {
				t.Errorf("%d frames went out, states %v", len(r.link.out), r.states)
			}
			r.postRecv(3, piece(0, 100))
			r.link.in = [][]byte{datagram(nil)}
			r.setState(ib.QPStateRTS)
			r.postSend(ring.Send{ID: 4, Flags: ib.SendSignaled})
			r.run()
			if got := r.completions(); len(got) != 2 || got[0].ID != 3 || got[1].ID != 4 || got[1].Status != ib.WCSuccess {
				t.Errorf("after going back to RTS: %+v", got)
			}
		})
	}
}

// Requests at the limits are sent.
func TestSendAtItsMost(t *testing.T) {
	shape := newRig(t).qp
	for _, row := range []struct {
		name string
		send ring.Send
		sges []ib.SGE
		want int
	}{
		{"the MTU", ring.Send{}, []ib.SGE{piece(0, 1024)}, 1024},
		{"to the last byte of the memory", ring.Send{}, []ib.SGE{piece(4*slotLen-5, 5)}, 5},
		{"an empty SGE without memory", ring.Send{}, []ib.SGE{{LKey: testKey(50)}, piece(0, 2)}, 2},
		{"all SGEs", ring.Send{}, slices.Repeat([]ib.SGE{piece(0, 1)}, int(shape.MaxSendSGE)), int(shape.MaxSendSGE)},
		{"all inline", ring.Send{Flags: ib.SendInline, InlineLen: shape.MaxInline}, nil, int(shape.MaxInline)},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			r.postSend(row.send, row.sges...)
			r.run()
			if got := r.sent().Payload(); len(got) != row.want {
				t.Errorf("%d bytes, want %d", len(got), row.want)
			}
		})
	}
}

// Each packet has a different IPv4 identification.
func TestIdentification(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.postSend(ring.Send{})
	}
	r.run()
	for i, frame := range r.link.out {
		if id := binary.BigEndian.Uint16(frame[wiretest.IP+4:]); id != uint16(i) {
			t.Errorf("packet %d has identification %d", i, id)
		}
	}
}

// Sending from memory that is not writable is allowed.
func TestSendFromReadOnlyMemory(t *testing.T) {
	r := newRig(t)
	r.postSend(ring.Send{}, ib.SGE{Length: 3, LKey: testKey(2)})
	r.run()
	if got := r.sent().Payload(); len(got) != 3 {
		t.Errorf("payload % x", got)
	}
}

func TestLoopback(t *testing.T) {
	r := newRig(t)
	copy(r.memory, "to myself")
	r.postRecv(1, piece(slotLen, 200))
	s := ring.Send{ID: 2, Opcode: ib.WRSend, Flags: ib.SendSignaled, AH: 1, SGECount: 1, RemoteQPN: testQP, RemoteQKey: testQKey}
	ring.PutSGE(r.send.Put(&s), piece(0, 9))
	r.send.Publish()
	r.doorbell.Ring(3)
	r.run()
	got := r.completions()
	if len(got) != 2 || got[0].ID != 1 || got[0].Status != ib.WCSuccess || got[1].ID != 2 {
		t.Fatalf("completions %+v", got)
	}
	if !bytes.Equal(r.memory[slotLen+40:][:9], []byte("to myself")) || len(r.link.out) != 0 {
		t.Errorf("%q, %d frames on the wire", r.memory[slotLen+40:][:9], len(r.link.out))
	}
	c := r.engine.Counters()
	if c.Sent != 1 || c.Received != 1 || c.Delivered != 1 || c.Loopback != 1 || c.Dropped() != 0 {
		t.Errorf("%+v", c)
	}
	if c.SentBytes != 9 || c.ReceivedBytes != 9 || c.DeliveredBytes != 9 {
		t.Errorf("bytes: %+v", c)
	}
}

// Packets that cannot be sent are dropped with their reason; the request succeeds.
func TestNotSent(t *testing.T) {
	for want, prepare := range map[Drop]func(r *rig) uint32{
		DropUnreachable: func(*rig) uint32 { return 3 },
		DropLinkDown: func(r *rig) uint32 {
			r.engine.Do(func() { r.engine.setLink(false) })
			return 0
		},
	} {
		r := newRig(t)
		r.link.full = true // the packet needs no frame of the link
		r.postSend(ring.Send{ID: 1, AH: prepare(r), Flags: ib.SendSignaled})
		r.run()
		c := r.engine.Counters()
		if c.Drops[want] != 1 || c.Dropped() != 1 || c.Sent != 1 || len(r.link.out) != 0 {
			t.Errorf("%v: %v, %d frames", want, named(&c), len(r.link.out))
		}
		if got := r.completions(); len(got) != 1 || got[0].Status != ib.WCSuccess {
			t.Errorf("%v: completions %+v", want, got)
		}
	}
}

// A full link delays requests without losing or reordering them, and the engine reports no work meanwhile.
func TestBackPressure(t *testing.T) {
	r := newRig(t)
	r.link.full = true
	for i := range rigDepth {
		r.postSend(ring.Send{ID: uint64(i), Flags: ib.SendSignaled})
	}
	r.run()
	if got := r.completions(); got != nil || !r.engine.more() {
		t.Fatalf("completions %+v, more %v", got, r.engine.more())
	}
	r.link.full = false
	r.run()
	got := r.completions()
	if len(got) != rigDepth || len(r.link.out) != rigDepth || r.engine.more() {
		t.Fatalf("%d completions, %d frames, more %v", len(got), len(r.link.out), r.engine.more())
	}
	for i, c := range got {
		if c.ID != uint64(i) {
			t.Errorf("completion %d is of request %d", i, c.ID)
		}
	}
}

// If the kernel has not accepted all frames, the link is flushed again without a doorbell.
func TestKickIsRepeated(t *testing.T) {
	r := newRig(t)
	r.link.stuck = true
	r.postSend(ring.Send{})
	r.run()
	before := r.link.flushes
	r.run()
	if r.link.flushes == before || !r.engine.round.blocked {
		t.Errorf("%d kicks, blocked %v", r.link.flushes, r.engine.round.blocked)
	}
	r.link.stuck = false
	if !r.round() || r.engine.round.blocked {
		t.Errorf("no frame was sent, or still blocked: %v", r.engine.round.blocked)
	}
}

// Frames that the interface refuses are counted, and reported once per flush. A flush without losses is not reported.
func TestRefusedByTheInterface(t *testing.T) {
	r := newRig(t)
	reports := 0
	r.engine.noteRefused = func() { reports++ }
	for _, refused := range []int{0, 1, 3, 0} {
		r.link.refused = refused
		r.postSend(ring.Send{})
		r.run()
	}
	if c := r.engine.Counters(); reports != 2 || c.Drops[DropInterface] != 4 || c.Dropped() != 4 {
		t.Errorf("reported %d times, %v", reports, named(&c))
	}
}

// Doorbell bits of queue pairs that do not exist have no effect.
func TestDoorbellThatLies(t *testing.T) {
	r := newRig(t)
	for index := range uint32(ring.MaxQueuePairs) {
		r.doorbell.Ring(index)
	}
	r.postSend(ring.Send{})
	r.run()
	r.sent()
}

// Random bytes in a send queue cause completions, not a crash.
func FuzzSendQueue(f *testing.F) {
	f.Add([]byte("x"), uint16(1))
	f.Add(bytes.Repeat([]byte{0xFF}, 64), uint16(3))
	f.Fuzz(func(t *testing.T, slot []byte, produced uint16) {
		r := newRig(t)
		for range min(produced, 3*rigDepth) {
			data := r.send.Put(&ring.Send{Opcode: ib.WRSend, Flags: ib.SendSignaled})
			copy(data, slot)
		}
		r.send.Publish()
		r.doorbell.Ring(3)
		r.run()
		if c := r.engine.Counters(); c.Sent != uint64(len(r.link.out))+c.Loopback+c.Drops[DropUnreachable] {
			t.Errorf("%+v", c)
		}
	})
}

// Neither sending nor receiving allocates memory.
func TestNoAllocationPerPacket(t *testing.T) {
	r := newRig(t)
	frame := datagram(make([]byte, 64))
	in := [][]byte{frame}
	sge := []ib.SGE{piece(0, 200)}
	r.link.out = make([][]byte, 0, 1)
	quiet := &quietLink{fakeLink: r.link}
	r.engine.link = quiet
	var c ring.CQE
	allocations := testing.AllocsPerRun(1000, func() {
		r.recv.Put(1, sge)
		r.recv.Publish()
		r.postSend(ring.Send{Flags: ib.SendSignaled}, sge...)
		r.link.in = in
		r.run()
		for r.cq.Available(1) > 0 {
			r.cq.Get(&c)
		}
		r.cq.Publish()
	})
	if allocations != 0 {
		t.Errorf("%v allocations per packet", allocations)
	}
	if counters := r.engine.Counters(); counters.Sent < 1000 || counters.Delivered < 1000 {
		t.Errorf("no packets were measured: %+v", counters)
	}
}

// quietLink keeps no copies.
type quietLink struct{ *fakeLink }

func (l *quietLink) Commit(int) {}
