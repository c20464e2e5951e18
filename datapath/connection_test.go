// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// lengths are message lengths around changes of the number of packets or of the pad.
var lengths = []int{0, 1, 3, 1023, 1024, 1025, 2048, 2049, 5000, 65536, 200_001}

// Each operation of each service, with each length and with long packets, transfers the correct bytes and has the
// correct completions at both ends.
func TestConnectedOperations(t *testing.T) {
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC} {
		for _, mtu := range []wire.MTU{wire.MTU256, wire.MTU1024, wire.MTU4096} {
			short := connectedOperations(t, service, mtu, false)
			if long := connectedOperations(t, service, mtu, true); long > short/2 {
				t.Errorf("%v, MTU %v: %d frames with long packets, %d without", service, mtu, long, short)
			}
		}
	}
}

// connectedOperations executes the operations of a service, and returns the number of sent frames.
func connectedOperations(t *testing.T, service wire.Service, mtu wire.MTU, long bool) (frames int) {
	p := connect(t, service, 1, func(c *Connection) { c.MTU = mtu })
	for _, e := range []*end{p.a, p.b} {
		e.engine.Do(func() { e.engine.tables.setMTU(wire.MTU4096) })
		if long {
			e.takesLong()
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, length := range lengths {
		for _, o := range []ib.Opcode{ib.WRSend, ib.WRSendWithImm, ib.WRRDMAWrite, ib.WRRDMAWriteWithImm, ib.WRRDMARead} {
			if service != wire.ServiceUC || o != ib.WRRDMARead {
				p.carryOut(r, o, length)
			}
		}
	}
	return p.a.port.frames + p.b.port.frames
}

// carryOut executes an operation with a length, and checks the bytes and the completions.
func (p *pairOf) carryOut(r *rand.Rand, o ib.Opcode, length int) {
	p.Helper()
	from, into := 100, 1_000_001
	source, dest := p.a.fill(r, from, length), p.b.memory[into:into+length]
	local := at(from, length)
	if o == ib.WRRDMARead {
		source, dest = p.b.fill(r, into, length), p.a.memory[from:from+length]
	}
	clear(dest)
	s := to(o, into)
	s.ID, s.Imm = 7, 0xCAFE
	takes := 0
	if o != ib.WRRDMAWrite && o != ib.WRRDMARead {
		takes = 1
		p.b.postRecv(9, at(into, length))
	}
	p.a.post(s, ring.Atomic{}, local)
	ofA, ofB := p.await(1, takes)
	for p.round() { // a WRITE over UC completes before it has arrived
	}
	if c := ofA[0]; c.Status != ib.WCSuccess || c.ID != 7 || c.Opcode != o.Completes() || c.ByteLen != uint32(length) {
		p.Errorf("%v of %d bytes: %+v", o, length, c)
	}
	if takes == 1 {
		c := ofB[0]
		imm := o == ib.WRSendWithImm || o == ib.WRRDMAWriteWithImm
		if c.Status != ib.WCSuccess || c.ID != 9 || c.ByteLen != uint32(length) || imm != (c.Flags&ib.WCWithImm != 0) || imm && c.Imm != 0xCAFE {
			p.Errorf("%v of %d bytes: receive %+v", o, length, c)
		}
	}
	if !bytes.Equal(source, dest) {
		p.Errorf("%v of %d bytes: the bytes differ", o, length)
	}
}

func TestAtomics(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	place := p.b.memory[800:808]
	binary.NativeEndian.PutUint64(place, 40)
	for _, row := range []struct {
		o            ib.Opcode
		a            ring.Atomic
		before, then uint64
	}{
		{ib.WRAtomicFetchAndAdd, ring.Atomic{CompareAdd: 2}, 40, 42},
		{ib.WRAtomicCmpAndSwp, ring.Atomic{CompareAdd: 41, Swap: 1}, 42, 42},
		{ib.WRAtomicCmpAndSwp, ring.Atomic{CompareAdd: 42, Swap: 1 << 63}, 42, 1 << 63},
		{ib.WRAtomicFetchAndAdd, ring.Atomic{CompareAdd: 1 << 63}, 1 << 63, 0},
	} {
		p.a.post(to(row.o, 800), row.a, at(16, 8))
		ofA, _ := p.await(1, 0)
		expect(t, ofA, ib.WCSuccess)
		if ofA[0].Opcode != row.o.Completes() || ofA[0].ByteLen != 8 || number(p.a.memory[16:]) != row.before || number(place) != row.then {
			t.Errorf("%+v: found %d, then %d; %+v", row, number(p.a.memory[16:]), number(place), ofA[0])
		}
	}
}

// Two ends with different path MTUs fail at the first message longer than the smaller MTU, as with short packets,
// because a long packet contains the number of packets that it stands for.
func TestLongPacketsOfAnotherMTU(t *testing.T) {
	for _, row := range []struct {
		o      ib.Opcode
		length int
		a, b   wire.MTU
		want   ib.WCStatus
	}{
		{ib.WRRDMAWrite, 64 << 10, wire.MTU256, wire.MTU1024, ib.WCRemInvReqErr},
		{ib.WRRDMAWrite, 64 << 10, wire.MTU1024, wire.MTU256, ib.WCRemInvReqErr},
		{ib.WRRDMAWrite, 1000, wire.MTU256, wire.MTU1024, ib.WCRemInvReqErr},
		{ib.WRRDMAWrite, 1000, wire.MTU1024, wire.MTU256, ib.WCRemInvReqErr},
		{ib.WRRDMARead, 64 << 10, wire.MTU256, wire.MTU1024, ib.WCBadRespErr},
		{ib.WRRDMARead, 64 << 10, wire.MTU1024, wire.MTU256, ib.WCBadRespErr},
		{ib.WRRDMARead, 1000, wire.MTU256, wire.MTU1024, ib.WCBadRespErr},
		{ib.WRRDMARead, 1000, wire.MTU1024, wire.MTU256, ib.WCBadRespErr},
	} {
		mtus := []wire.MTU{row.a, row.b}
		p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.MTU, mtus = mtus[0], mtus[1:] })
		p.takesLong()
		p.a.post(to(row.o, 1_000_000), ring.Atomic{}, at(0, row.length))
		ofA, _ := p.await(1, 0)
		if ofA[0].Status != row.want {
			t.Errorf("%v of %d bytes from %v to %v: %v", row.o, row.length, row.a, row.b, ofA[0].Status)
		}
	}
}

// A retransmitted long packet counts as the packets that it stands for. A queue pair that is reset or removed sends its
// outstanding responses in long packets too.
func TestLongPacketsAreCounted(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	p.takesLong()
	p.a.post(ring.SendConnected{Opcode: ib.WRSend, Flags: ib.SendSignaled}, ring.Atomic{}, at(0, 64<<10))
	for p.a.engine.Counters().RNRNAKs == 0 {
		p.round()
	}
	p.b.postRecv(1, at(recvArea, 64<<10))
	p.await(1, 1)
	if n := p.a.engine.Counters().Retransmits; n < 64 || n%32 != 0 { // one of the two packets may be retransmitted alone
		t.Errorf("%d of 64 packets were retransmitted", n)
	}

	p.a.post(to(ib.WRRDMARead, 0), ring.Atomic{}, at(0, 4<<20))
	p.a.engine.Round()
	p.b.engine.Do(func() {
		p.b.engine.receive(listens)
		p.b.port.frames = 0
		p.b.c.replyLast()
	})
	if n := p.b.port.frames; n > sendTurn/32 {
		t.Errorf("%d frames of 32 packets each when the queue pair ends", n)
	}
}

// lossyPort drops one sent frame.
type lossyPort struct {
	link.Port
	next int // number of the frame to drop, counted from 1; 0: none
}

func (p *lossyPort) Commit(length int) {
	if p.next--; p.next != 0 {
		p.Port.Commit(length)
	}
}

// The requester does not conclude from the loss of a long packet whether the peer keeps packets ahead of a missing one.
func TestLostLongPacket(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.Timeout = 18 })
	for _, e := range []*end{p.a, p.b} {
		e.engine.Do(e.modernise)
		e.takesLong()
	}
	wire := &lossyPort{Port: p.a.port.Port, next: 1}
	p.a.port.Port = wire
	for range 3 {
		p.a.post(to(ib.WRRDMAWrite, recvArea), ring.Atomic{}, at(sourceArea, 32<<10))
	}
	p.await(3, 0)
	before := p.a.engine.Counters().Retransmits
	if before == 0 {
		t.Error("no packet was lost")
	}
	p.a.engine.Do(func() { p.a.port.SetWatched(true) })
	wire.next = 3
	p.a.post(to(ib.WRRDMAWrite, recvArea), ring.Atomic{}, at(sourceArea, 64<<10))
	p.await(1, 0)
	if again := p.a.engine.Counters().Retransmits - before; again == 0 || again > 8 { // on a slow machine the last ones too
		t.Errorf("for one short packet %d of 64 were retransmitted", again)
	}
}

// If a message of long packets exceeds its receive request, the same part of it is written as with short packets. Of a
// WRITE with immediate data, only the last packet needs a receive request.
func TestLongPacketsOnTheirWay(t *testing.T) {
	for _, long := range []bool{false, true} {
		p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.RNRRetry = 0 })
		if long {
			p.takesLong()
		}
		source := p.a.fill(rand.New(rand.NewPCG(1, 2)), 0, 10<<10)
		into := p.b.memory[recvArea:][:len(source)]
		p.a.post(to(ib.WRRDMAWriteWithImm, recvArea), ring.Atomic{}, at(0, len(source)))
		ofA, _ := p.await(1, 0)
		expect(t, ofA, ib.WCRNRRetryExcErr)
		if last := 9 << 10; !bytes.Equal(into[:last], source[:last]) || !bytes.Equal(into[last:], make([]byte, 1<<10)) {
			t.Errorf("long %v: a WRITE without a receive request has written different bytes", long)
		}

		p = connect(t, wire.ServiceRC, 1, nil)
		if long {
			p.takesLong()
		}
		source = p.a.fill(rand.New(rand.NewPCG(1, 2)), 0, 10<<10)
		into = p.b.memory[recvArea:][:len(source)]
		p.b.postRecv(1, at(recvArea, 2500))
		p.a.post(ring.SendConnected{Opcode: ib.WRSend, Flags: ib.SendSignaled}, ring.Atomic{}, at(0, len(source)))
		ofA, ofB := p.await(1, 1)
		expect(t, ofA, ib.WCRemInvReqErr)
		expect(t, ofB, ib.WCLocLenErr)
		if end := 2 << 10; !bytes.Equal(into[:end], source[:end]) || !bytes.Equal(into[end:], make([]byte, 8<<10)) {
			t.Errorf("long %v: a message that is too long has written different bytes", long)
		}
	}
}
