// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

const (
	// number of messages between the ends of TestStorm: default 500, 90,000 in "make storm"
	stormVariable = "ROCED_STORM"
	stormSlots    = 4 // outstanding requests of an end
	stormArea     = endMemory / 4
	stormSlot     = stormArea / stormSlots
)

// The areas of an end's memory: the one that it sends from or reads into, the one that the peer writes to, its receive
// requests, and the one that the peer reads. Two operands, for atomics and for their results, are in gaps of slots.
const (
	sourceArea = iota * stormArea
	writeArea
	recvArea
	readArea
	numberPlace = stormSlot - 8 // of the write area's first slot
)

// stormEnd is one end of a storm: it posts random requests, and checks each when it completes.
type stormEnd struct {
	*testing.T
	r        *rand.Rand
	own      *end
	peer     *end
	posted   int
	done     int
	value    uint64 // expected value of the peer's operand when all posted requests are executed
	requests [stormSlots]request
	expected []request // by the peer's receive requests, in order
	taken    int       // receive requests that the peer has completed
}

// request is an outstanding request.
type request struct {
	o      ib.Opcode
	length int
	number int    // number of the request; for a READ: of the slot that it reads
	found  uint64 // expected original value of an atomic
}

func newStormEnd(t *testing.T, seed uint64, own, peer *end) *stormEnd {
	s := &stormEnd{T: t, r: rand.New(rand.NewPCG(seed, uint64(own.mac[5]))), own: own, peer: peer}
	own.fill(s.r, readArea, stormArea)
	for i := range stormSlots {
		own.postRecv(uint64(i), at(recvArea+i*stormSlot, stormSlot))
	}
	return s
}

// length returns a message length, usually of few packets, sometimes of many.
func (s *stormEnd) length() int {
	switch n := s.r.IntN(1000); {
	case n < 5:
		return s.r.IntN(stormSlot - 8)
	case n < 200:
		return s.r.IntN(32 << 10)
	}
	return s.r.IntN(4 << 10)
}

func (s *stormEnd) post() {
	slot := s.posted % stormSlots
	q := request{o: ib.Opcode(s.r.IntN(7)), length: s.length(), number: s.posted}
	local, place := sourceArea+slot*stormSlot, writeArea+slot*stormSlot
	switch q.o {
	case ib.WRRDMARead:
		place = readArea + s.r.IntN(stormArea-q.length)
		q.number = place
	case ib.WRAtomicCmpAndSwp, ib.WRAtomicFetchAndAdd:
		q.length, place = 8, writeArea+numberPlace
	default:
		s.own.fill(s.r, local, q.length)
	}
	if q.o == ib.WRRDMAWriteWithImm || q.o == ib.WRSend || q.o == ib.WRSendWithImm {
		s.expected = append(s.expected, q)
	}
	w := to(q.o, place)
	w.ID, w.Imm = uint64(s.posted), uint32(s.posted)
	q.found = s.value
	s.own.post(w, s.operands(q.o), at(local, q.length))
	s.requests[slot] = q
	s.posted++
}

// operands returns an atomic's operands. Every other compare-and-swap swaps.
func (s *stormEnd) operands(o ib.Opcode) (a ring.Atomic) {
	a = ring.Atomic{CompareAdd: s.value + uint64(s.r.IntN(2)), Swap: s.r.Uint64()}
	switch {
	case o == ib.WRAtomicFetchAndAdd:
		s.value += a.CompareAdd
	case o == ib.WRAtomicCmpAndSwp && a.CompareAdd == s.value:
		s.value = a.Swap
	}
	return a
}

// completed checks the result of a request.
func (s *stormEnd) completed(c *ring.CQE) {
	if c.Status != ib.WCSuccess || c.ID != uint64(s.done) {
		s.Fatalf("request %d: %+v", s.done, c)
	}
	slot := s.done % stormSlots
	q := s.requests[slot]
	local := s.own.memory[sourceArea+slot*stormSlot:][:q.length]
	s.done++
	switch q.o {
	case ib.WRRDMAWrite, ib.WRRDMAWriteWithImm:
		if !bytes.Equal(local, s.peer.memory[writeArea+slot*stormSlot:][:q.length]) {
			s.Fatalf("request %d: a WRITE of %d bytes has not arrived", c.ID, q.length)
		}
	case ib.WRRDMARead:
		if !bytes.Equal(local, s.peer.memory[q.number:][:q.length]) {
			s.Fatalf("request %d: a READ of %d bytes returned different bytes", c.ID, q.length)
		}
	case ib.WRAtomicFetchAndAdd, ib.WRAtomicCmpAndSwp:
		if found := binary.NativeEndian.Uint64(local); found != q.found {
			s.Fatalf("request %d: got the original value %d, want %d", c.ID, found, q.found)
		}
	}
}

// received checks a receive completion of the peer.
func (s *stormEnd) received(c *ring.CQE) {
	if s.taken >= len(s.expected) {
		s.Fatalf("unexpected receive completion: %+v", c)
	}
	q := s.expected[s.taken]
	imm := q.o != ib.WRSend
	if c.Status != ib.WCSuccess || c.ID != uint64(s.taken%stormSlots) || int(c.ByteLen) != q.length || imm && c.Imm != uint32(q.number) {
		s.Fatalf("receive %d: %+v, of %+v", s.taken, c, q)
	}
	slot := s.taken % stormSlots
	into := s.peer.memory[recvArea+slot*stormSlot:][:q.length]
	if q.o != ib.WRRDMAWriteWithImm && !bytes.Equal(into, s.own.memory[sourceArea+q.number%stormSlots*stormSlot:][:q.length]) {
		s.Fatalf("receive %d: the bytes differ from request %d", s.taken, q.number)
	}
	s.taken++
	s.peer.postRecv(uint64(slot), at(recvArea+slot*stormSlot, stormSlot))
}

// TestStorm has both ends send each other requests of all kinds and lengths while the network loses, duplicates,
// corrupts, delays, reorders and marks packets. Each request is executed once, in order, and correctly. Modern ends
// keep packets that arrive before a lost one, and implement congestion control. Time is simulated, so timeouts take no
// real time and do not depend on the speed of the machine.
func TestStorm(t *testing.T) {
	messages, seed := waittest.Wanted(t, stormVariable, waittest.Often(500)), rand.Uint64()
	for name, i := range map[string]link.Impairment{
		"nothing": {}, "loss": {Loss: 0.02}, "duplication": {Duplication: 0.2}, "corruption": {Corruption: 0.05}, "reordering": {Jitter: 20 * time.Microsecond},
		"marks": {Rate: 1e9, Mark: 50 * time.Microsecond}, "loss and marks": {Loss: 0.01, Rate: 1e9, Mark: 50 * time.Microsecond},
		"all": {Loss: 0.01, Duplication: 0.02, Corruption: 0.01, Jitter: 10 * time.Microsecond},
	} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/modern=%v", name, modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { storm(t, seed, messages, i, modern, false) })
			})
			t.Run(fmt.Sprintf("%s/modern=%v/now and then", name, modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { storm(t, seed, messages, i, modern, true) })
			})
		}
	}
}

// stormStep is the duration of an idle round, stormTimeout the code of a queue pair's timeout: 8 ms.
const (
	stormStep    = 5 * time.Microsecond
	stormTimeout = 11
)

// storm has two ends send each other messages over an impaired network. With nowAndThen the impairment is switched on
// and off: long packets are sent while it is off, and are in flight when it begins.
func storm(t *testing.T, seed uint64, messages int, i link.Impairment, modern, nowAndThen bool) {
	t.Logf("seed %d", seed)
	p := connect(t, wire.ServiceRC, seed, func(c *Connection) {
		c.Timeout = stormTimeout
		if modern {
			c.Template = c.Template.ECNCapable()
		}
	})
	for _, e := range []*end{p.a, p.b} {
		if modern {
			e.engine.Do(e.modernise)
		}
	}
	if nowAndThen {
		p.takesLong()
	}
	a, b := newStormEnd(t, seed, p.a, p.b), newStormEnd(t, seed, p.b, p.a)
	p.network.Impair(i)
	for round := 0; a.done < messages || b.done < messages; {
		for _, s := range []*stormEnd{a, b} {
			for s.posted < messages && s.posted < s.done+stormSlots {
				s.post()
			}
		}
		if !p.round() {
			time.Sleep(stormStep)
		}
		p.settle(a, b)
		if round++; nowAndThen && round%8 == 0 {
			p.network.Impair([]link.Impairment{i, {}}[round/8%2])
		}
	}
	t.Logf("%+v %+v", p.network.Counters(), p.a.engine.Counters())
}

// modernise makes an end implement congestion control, and keep packets that arrive before a lost one.
func (e *end) modernise() {
	parameters := dcqcn.Defaults()
	e.engine.congestion, e.engine.ahead = &parameters, conn.NewAhead(64)
	e.c.Requester.Mends, e.c.Responder.Ahead = true, e.engine.ahead
}

// settle checks completions. A receive is checked before the completion of its request, since the slot is reused
// afterwards.
func (p *pairOf) settle(a, b *stormEnd) {
	ofA, ofB := p.a.poll(), p.b.poll()
	for i, c := range slices.Concat(ofA, ofB) {
		if c.Status != ib.WCSuccess && c.Status != ib.WCWRFlushErr {
			p.Fatalf("%+v, one of %d of a: a %+v, b %+v", c, len(ofA)-i, p.a.engine.counters, p.b.engine.counters)
		}
	}
	for _, side := range []struct {
		list     []ring.CQE
		from, to *stormEnd
	}{{ofA, b, a}, {ofB, a, b}} {
		for i := range side.list {
			if c := &side.list[i]; c.Opcode.IsRecv() {
				side.from.received(c)
			}
		}
	}
	for i := range ofA {
		if c := &ofA[i]; !c.Opcode.IsRecv() {
			a.completed(c)
		}
	}
	for i := range ofB {
		if c := &ofB[i]; !c.Opcode.IsRecv() {
			b.completed(c)
		}
	}
}
