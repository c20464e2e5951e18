// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

// A program can write anything into its queues. These tests do so, on every service, in every state.

// scribbler is an end whose program writes invalid data into its queues. Its queue pair is connected to itself, so that
// requests are received, acknowledged and completed too.
type scribbler struct {
	*end
	sendMemory, recvMemory []byte
	window                 ib.RKey
}

// Offsets in a queue's memory; see ring.h.
const (
	producerAt = 0
	consumerAt = 128
	slotsAt    = 256
)

// newScribbler returns a scribbler with a queue pair of a service, with or without an SRQ.
func newScribbler(t testing.TB, service wire.Service, shared bool) *scribbler {
	t.Helper()
	network := link.NewNetwork(1)
	s := &scribbler{end: newEnd(t, network, 1)}
	sendShape, recvShape := ring.ConnectedGeometry(8, 2, 64), ring.RecvGeometry(8, 2)
	s.sendMemory, s.recvMemory = ring.Alloc(sendShape.Size()), ring.Alloc(recvShape.Size())
	s.qp.MaxSendSGE, s.qp.MaxInline = sendShape.SendRoom()
	s.qp.Send, _ = ring.NewSendConsumer(s.sendMemory, sendShape)
	s.qp.Recv, _ = ring.NewRecvConsumer(s.recvMemory, recvShape)
	s.qp.SendCQ.NoteOverrun = func() {} // the CQ is not polled
	if shared {
		s.qp.SRQ = &SRQ{Queue: s.qp.Recv, PD: testPD, NoteLimit: func() {}}
	}
	s.engine.Do(func() {
		s.window = ib.RKey(testKey(5))
		s.session.SetMW(s.window, &region.MW{PD: testPD, Type2: true})
		s.session.SetAH(0, &AH{PD: testPD, Path: &Path{state: PathLocal}, Template: wire.NewTemplate(wire.Path{Source: s.gid, Dest: s.gid})})
		if service != wire.ServiceUD {
			s.c = &Connection{
				PeerQPN: testQP, Peer: s.gid, Path: &Path{state: PathLocal}, Template: wire.NewTemplate(wire.Path{Source: s.gid, Dest: s.gid}),
				Attr: conn.Attr{
					Service: service, MTU: wire.MTU256, Timeout: 1, RetryCnt: 1, RNRRetry: 1, MaxRDAtomic: 2, MaxDestRDAtomic: 2,
					Access: ib.AccessRemoteRead | ib.AccessRemoteWrite | ib.AccessRemoteAtomic,
				},
			}
			s.qp.Serve(s.c)
		} else {
			s.qp.Serve(new(Datagrams))
		}
		s.qp.QKey = testQKey
		s.engine.AddQP(s.qp)
	})
	return s
}

// enter moves the queue pair to a state, with empty queues.
func (s *scribbler) enter(state ib.QPState) {
	s.engine.Do(func() {
		s.qp.SetState(ib.QPStateReset)
		for _, next := range statesTo(state) {
			s.qp.SetState(next)
		}
	})
	for _, memory := range [][]byte{s.sendMemory, s.recvMemory} {
		index := binary.NativeEndian.Uint32(memory[consumerAt:])
		binary.NativeEndian.PutUint32(memory[producerAt:], index)
	}
	if s.qp.SRQ == nil {
		return
	}
	s.engine.Do(s.qp.Recv.Skip)
}

// statesTo returns the states that lead to a state.
func statesTo(state ib.QPState) []ib.QPState {
	way := []ib.QPState{ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS}
	for i, one := range way {
		if one == state {
			return way[:i+1]
		}
	}
	if state == ib.QPStateReset {
		return nil
	}
	return append(way, state)
}

// slot returns the memory of the slot that is posted next.
func slot(memory []byte, entries int) []byte {
	stride := (len(memory) - slotsAt) / entries
	next := int(binary.NativeEndian.Uint32(memory[producerAt:])) % entries
	return memory[slotsAt+next*stride:][:stride]
}

// announce posts the next slot by incrementing the producer index.
func announce(memory []byte) {
	binary.NativeEndian.PutUint32(memory[producerAt:], binary.NativeEndian.Uint32(memory[producerAt:])+1)
}

// base writes a valid receive request and a valid send request, so that a byte changed later is the only fault.
func (s *scribbler) base(o ib.Opcode) {
	recv := slot(s.recvMemory, 8)
	clear(recv)
	binary.LittleEndian.PutUint64(recv, 1)
	binary.LittleEndian.PutUint32(recv[8:], 1)
	ring.PutSGE(recv[16:], at(8192, 2048))
	send := slot(s.sendMemory, 8)
	clear(send)
	w := to(o, 4096)
	w.SGECount = 1
	length, data := 600, send[32:]
	if s.c == nil { // address handle 0, and the peer's numbers in the same fields
		w.RemoteAddr, w.RKey = uint64(testQP)<<32, ib.RKey(testQKey)
	}
	switch o {
	case ib.WRAtomicCmpAndSwp, ib.WRAtomicFetchAndAdd:
		length, data = 8, data[ring.AtomicLen:]
	case ib.WRBindMW:
		w.RemoteAddr, w.RKey = endBase, s.window
		ring.PutBind(data, ring.Bind{Length: 100, LKey: testKey(1), Access: ib.AccessRemoteRead})
		data = nil
	case ib.WRLocalInv, ib.WRSendWithInv:
		w.Imm = uint32(s.window)
	}
	if data != nil {
		ring.PutSGE(data, at(0, length))
	}
	head := uint64(w.Opcode) | uint64(w.Flags)<<8 | uint64(w.SGECount)<<16 | uint64(w.Imm)<<32
	binary.LittleEndian.PutUint64(send[8:], head)
	binary.LittleEndian.PutUint64(send[16:], w.RemoteAddr)
	binary.LittleEndian.PutUint64(send[24:], uint64(w.RKey))
}

// run rings the doorbell, and runs the engine until it has no more work, up to a limit.
func (s *scribbler) run() {
	s.bell.Ring(s.qp.DoorbellIndex)
	e := s.engine
	e.lease.Lock()
	for range 8 {
		if !e.runRound() {
			break
		}
	}
	e.lease.Unlock()
	s.poll()
}

var scribbledStates = []ib.QPState{ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS, ib.QPStateSQD, ib.QPStateSQE, ib.QPStateErr}

// TestEveryByteOfARequest writes each value into each byte of a send request and of a receive request: of each kind, on
// each service, with an SRQ and without, in each state. The engine continues, and each packet is counted once.
func TestEveryByteOfARequest(t *testing.T) {
	t.Parallel()
	values := byteValues(t)
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceUD} {
		for _, shared := range []bool{false, true} {
			s := newScribbler(t, service, shared)
			for _, state := range scribbledStates {
				s.everyByte(state, values)
			}
			if c := s.engine.Counters(); c.Received+c.Copies != c.Delivered+c.Dropped() || c.Sent == 0 {
				t.Errorf("service %v: %+v", service, c)
			}
		}
	}
}

// valuesVariable is the number of values that TestEveryByteOfARequest tries in each byte: the first of byteValues. The
// default is all if ROCED_ROUNDS is set, else a fifth.
const valuesVariable = "ROCED_VALUES"

// edges are boundary values.
var edges = []byte{0, 1, 2, 3, 0x1F, 0x20, 0x7F, 0x80, 0xFE, 0xFF}

// byteValues returns all values of a byte: edges first, then small ones, as in opcodes and counts.
func byteValues(t *testing.T) []byte {
	values := slices.Clone(edges)
	for v := range 1 << 8 {
		if !slices.Contains(edges, byte(v)) {
			values = append(values, byte(v))
		}
	}
	if text := os.Getenv(valuesVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > len(values) {
			t.Fatalf("%s=%s: %v; want a number from 1 to %d", valuesVariable, text, err, len(values))
		}
		return values[:n]
	}
	return values[:waittest.Often(len(values))]
}

func (s *scribbler) everyByte(state ib.QPState, values []byte) {
	kinds := []ib.Opcode{
		ib.WRSend, ib.WRSendWithImm, ib.WRSendWithInv, ib.WRRDMAWrite, ib.WRRDMAWriteWithImm, ib.WRRDMARead,
		ib.WRAtomicCmpAndSwp, ib.WRAtomicFetchAndAdd, ib.WRBindMW, ib.WRLocalInv,
	}
	if state != ib.QPStateRTS {
		kinds = kinds[:1] // the request is only flushed there, not read
	}
	for _, o := range kinds {
		for at := range 32 + 16 + 2*ring.SGELen {
			for _, value := range values {
				s.try(state, o, func() { slot(s.sendMemory, 8)[at] = value })
			}
		}
		for at := range 16 + 2*ring.SGELen {
			for _, value := range edges {
				s.try(state, o, func() { slot(s.recvMemory, 8)[at] = value })
			}
		}
	}
}

// try posts a modified request and a modified receive request.
func (s *scribbler) try(state ib.QPState, o ib.Opcode, change func()) {
	if s.qp.State != state {
		s.enter(state)
	}
	s.base(o)
	change()
	announce(s.recvMemory)
	announce(s.sendMemory)
	s.run()
	if s.qp.State != state || state != ib.QPStateRTS {
		s.enter(state) // with queues that are not full
	}
}

// TestEveryIndex writes invalid indices into the words of both sides.
func TestEveryIndex(t *testing.T) {
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceUD} {
		s := newScribbler(t, service, false)
		r := rand.New(rand.NewPCG(1, 1))
		for range 20_000 {
			s.enter(scribbledStates[r.IntN(len(scribbledStates))])
			s.base(ib.Opcode(r.IntN(12)))
			announce(s.recvMemory)
			announce(s.sendMemory)
			memory := s.sendMemory
			if r.IntN(2) == 0 {
				memory = s.recvMemory
			}
			word := memory[r.IntN(2)*consumerAt+4*r.IntN(3):]
			binary.NativeEndian.PutUint32(word, []uint32{0, 1, 9, 1 << 31, r.Uint32(), binary.NativeEndian.Uint32(word) + uint32(r.IntN(20)) - 10}[r.IntN(6)])
			s.run()
		}
	}
}

// TestHostileProgram posts requests with random bytes, in random states, on each service, with an SRQ and without.
// ROCED_HOSTILE sets their number.
func TestHostileProgram(t *testing.T) {
	t.Parallel()
	posts := waittest.Wanted(t, hostileVariable, 100_000)
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceUD} {
		for _, shared := range []bool{false, true} {
			seed := rand.Uint64()
			t.Logf("service %v, SRQ %v: seed %d", service, shared, seed)
			s, r := newScribbler(t, service, shared), rand.New(rand.NewPCG(seed, 0))
			for posted := 0; posted < posts/6; {
				posted += s.postWrongly(r)
			}
			if c := s.engine.Counters(); c.Received+c.Copies != c.Delivered+c.dropped() || c.Sent == 0 || c.Faults != 0 {
				t.Errorf("service %v: %+v", service, c)
			}
		}
	}
}

// postWrongly posts some invalid requests, and returns their number.
func (s *scribbler) postWrongly(r *rand.Rand) (posted int) {
	if s.qp.State != ib.QPStateRTS || r.IntN(16) == 0 {
		s.enter(scribbledStates[r.IntN(len(scribbledStates))])
	}
	for range 1 + r.IntN(4) {
		s.base(ib.Opcode(r.IntN(12)))
		for range r.IntN(4) {
			send, recv := slot(s.sendMemory, 8), slot(s.recvMemory, 8)
			send[r.IntN(len(send))] = byte(r.Uint32())
			recv[r.IntN(len(recv))] = byte(r.Uint32())
		}
		announce(s.recvMemory)
		announce(s.sendMemory)
		posted++
	}
	s.run()
	if s.qp.State == ib.QPStateRTS { // remaining requests must not disturb the next
		s.enter(ib.QPStateRTS)
	}
	return posted
}

// FuzzProgram lets a program write anywhere, and runs the engine in between: each four bytes of the input are a step.
func FuzzProgram(f *testing.F) {
	f.Add(uint8(0), []byte{1, 8, 10, 0, 0, 0, 0, 0})
	f.Add(uint8(1), []byte{1, 9, 2, 0, 2, 8, 255, 0, 3, 0, 0, 0})
	f.Fuzz(func(t *testing.T, kind uint8, steps []byte) {
		s := newScribbler(t, []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceUD}[kind%3], kind&4 != 0)
		s.scribble(steps)
	})
}

// scribble executes steps; each consists of an action, an offset and a value.
func (s *scribbler) scribble(steps []byte) {
	s.enter(ib.QPStateRTS)
	for len(steps) >= 4 {
		do, at, value, high := steps[0], steps[1], steps[2], steps[3]
		steps = steps[4:]
		switch do % 8 {
		case 0:
			s.base(ib.Opcode(value % 12))
		case 1:
			slot := slot(s.sendMemory, 8)
			slot[int(at)%len(slot)] = value
		case 2:
			slot := slot(s.recvMemory, 8)
			slot[int(at)%len(slot)] = value
		case 3:
			announce(s.sendMemory)
		case 4:
			announce(s.recvMemory)
		case 5:
			s.run()
		case 6:
			s.enter(scribbledStates[int(value)%len(scribbledStates)])
		case 7: // any offset, including those of requests already posted
			memory := s.sendMemory
			if high&0x80 != 0 {
				memory = s.recvMemory
			}
			memory[(int(high&0x7F)<<8|int(at))%len(memory)] = value
		}
	}
	s.run()
}
