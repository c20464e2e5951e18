// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

// hostileVariable is the number of packets that TestHostilePeer forges, and of requests that TestHostileProgram posts.
const hostileVariable = "ROCED_HOSTILE"

// The parts of the memory of an end with a hostile peer. Only the first is writable for the peer. Only the second is
// written by the end's own requests: receive requests, READs and atomics.
const (
	openLen   = 8 << 10
	ownFrom   = 32 << 10
	ownLen    = 8 << 10
	hostileOp = 4 // the end's own outstanding requests
)

// victim is an end whose peer forges packets.
type victim struct {
	*end
	template wire.Template
	frame    [wire.MaxHeaders + 32<<10 + wire.MaxTrailer]byte
	before   []byte
	packets  int
	stoodFor uint64  // the number of packets that these stand for according to their headers
	arriveAt *Engine // engine of the same card that receives the packets and hands them over; nil: the victim's own
}

func newVictim(t *testing.T, service wire.Service) *victim {
	p := connect(t, service, 1, func(c *Connection) { c.MTU = wire.MTU256 })
	return victimOf(p.a, p.b)
}

// victimOf converts an end of a connection to a victim.
func victimOf(a, b *end) *victim {
	v := &victim{end: a, template: wire.NewTemplate(wire.Path{Source: b.gid, Dest: a.gid, DestMAC: a.mac, SourceMAC: b.mac})}
	a.fill(rand.New(rand.NewPCG(1, 1)), 0, endMemory)
	v.before = bytes.Clone(v.memory)
	v.engine.Do(func() {
		open := ib.AccessRemoteRead | ib.AccessRemoteWrite | ib.AccessRemoteAtomic
		v.session.SetMR(&region.MR{LKey: testKey(1), PD: testPD, Base: endBase, Memory: v.memory[:openLen:openLen], Write: true, Remote: open})
		v.session.SetMR(&region.MR{LKey: testKey(2), PD: testPD + 1, Base: endBase, Memory: v.memory[:openLen:openLen], Write: true, Remote: open})
		v.session.SetMR(&region.MR{LKey: testKey(3), PD: testPD, Base: endBase, Memory: v.memory[ownFrom:][:ownLen:ownLen], Write: true})
		v.session.SetMR(&region.MR{LKey: testKey(4), PD: testPD, Base: endBase, Memory: v.memory[2*ownFrom:][:ownLen:ownLen], Remote: ib.AccessRemoteRead})
	})
	return v
}

// revive recovers a failed queue pair, with outstanding receive and send requests.
func (v *victim) revive(r *rand.Rand) {
	v.engine.Do(func() {
		v.qp.SetState(ib.QPStateReset)
		v.qp.SetState(ib.QPStateInit)
		v.c.Responder.ExpectedPSN = wire.PSN(r.Uint32()) & wire.PSNMask
		v.qp.SetPSN(wire.PSN(r.Uint32()) & wire.PSNMask)
		v.qp.SetState(ib.QPStateRTR)
		v.qp.SetState(ib.QPStateRTS)
	})
	v.polled = v.send.Signaled()
	if v.qp.Domain != nil {
		v.revivesTarget(r)
		return
	}
	own := func(length int) ib.SGE {
		return ib.SGE{Addr: endBase + uint64(r.IntN(ownLen-length+1)), Length: uint32(length), LKey: testKey(3)}
	}
	for i := range 8 {
		v.postRecv(uint64(i), own(r.IntN(ownLen)))
	}
	for range hostileOp {
		o := ib.Opcode(r.IntN(7))
		if !o.On(v.c.Service) {
			o = ib.WRSend
		}
		length := r.IntN(2000)
		if o == ib.WRAtomicCmpAndSwp || o == ib.WRAtomicFetchAndAdd {
			length = 8
		}
		v.post(to(o, 0), ring.Atomic{CompareAdd: 1}, own(length))
	}
}

// forge returns a packet similar to the valid next one: boundary values are frequent in each field.
func (v *victim) forge(r *rand.Rand) []byte {
	c := v.c
	h := wire.Transport{
		Opcode: c.Service.Of(wire.Opcode(r.IntN(24))), DestQP: testQP, PKey: wire.PKeyDefault, AckReq: r.IntN(2) == 0, Solicited: r.IntN(2) == 0,
		RKey: uint32(testKey(uint32(1 + r.IntN(4)))), Addr: endBase + uint64(r.IntN(openLen+64)) - 32, Length: uint32(r.IntN(600)),
		SRQN: wire.SRQN(max(5, r.IntN(9))), SwapAdd: r.Uint64(), Compare: r.Uint64(), Syndrome: wire.Syndrome(r.Uint32()), MSN: r.Uint32() & uint32(wire.PSNMask), Original: r.Uint64(), Imm: r.Uint32(),
	}
	h.PSN = c.Responder.ExpectedPSN.Plus(uint32(max(0, r.IntN(8)-5)))
	if o := h.Opcode.Operation(); o >= wire.OpReadResponseFirst && o <= wire.OpAtomicAcknowledge {
		h.PSN = c.Requester.Oldest().Plus(uint32(max(0, r.IntN(8)-5)))
	}
	switch r.IntN(16) {
	case 0:
		h.PSN = wire.PSN(r.Uint32()) & wire.PSNMask
	case 1:
		h.PSN = h.PSN.Plus(uint32(wire.PSNMask) - uint32(r.IntN(8)))
	case 2:
		h.RKey, h.Addr, h.Length = r.Uint32(), r.Uint64(), r.Uint32()
	case 3:
		h.Addr &^= 7
	}
	length := 256
	switch r.IntN(8) {
	case 0, 1, 2, 3:
		length = r.IntN(300)
	case 4: // a long packet, usually with the correct number of packets
		length = r.IntN(4096)
		h.Packets = uint32(length+255)/256 + uint32(max(0, r.IntN(8)-6))
	}
	return v.seal(&h, length)
}

func (v *victim) seal(h *wire.Transport, length int) []byte {
	row, ok := h.Opcode.Headers()
	if !ok {
		h.Opcode = v.c.Service.Of(wire.OpSendOnly)
		row, _ = h.Opcode.Headers()
	}
	if row.Mask&wire.HeaderNoPayload != 0 {
		length = 0
	}
	return v.frame[:v.template.SealTransport(v.frame[:], h, length)]
}

// take delivers a frame to the victim, and runs its engine.
func (v *victim) take(frame []byte) {
	v.packets++
	v.stoodFor++
	var p wire.Packet
	if wire.Parse(frame, &p) == wire.FaultNone {
		v.stoodFor += uint64(p.BTH().Packets()) - 1
	}
	e := v.engine
	if from := v.arriveAt; from != nil {
		from.lease.Lock()
		if !from.peers.passOn(frame) {
			from.rx.receive(frame)
		}
		from.lease.Unlock()
	} else {
		e.lease.Lock()
		e.rx.receive(frame)
		e.lease.Unlock()
	}
	e.lease.Lock()
	if e.peers.Peer != nil {
		e.round.budget = receiveBudget
		e.peers.receive()
	}
	e.transmit()
	e.completions.publish()
	e.lease.Unlock()
}

// intact checks that only permitted memory was written.
func (v *victim) intact() {
	for _, part := range [][2]int{{openLen, ownFrom}, {ownFrom + ownLen, endMemory}} {
		if !bytes.Equal(v.memory[part[0]:part[1]], v.before[part[0]:part[1]]) {
			v.Fatalf("memory between %d and %d was written", part[0], part[1])
		}
	}
}

// harass sends up to 64 forged packets, until the queue pair has failed.
func (v *victim) harass(r *rand.Rand) { v.harassBy(r, func() []byte { return v.forge(r) }) }

// harassBy is harass with packets from forge.
func (v *victim) harassBy(r *rand.Rand, forge func() []byte) {
	v.revive(r)
	for range 64 {
		v.take(forge())
		if v.qp.State == ib.QPStateErr || v.qp.State == ib.QPStateSQE {
			break
		}
	}
	for _, c := range v.poll() {
		if c.Status == ib.WCSuccess && c.Opcode.IsRecv() && int(c.ByteLen) > ownLen {
			v.Fatalf("got a receive of %d bytes", c.ByteLen)
		}
	}
}

// TestHostilePeer: whatever a connection's peer sends, only memory permitted by a key is written, and each packet is
// counted once.
func TestHostilePeer(t *testing.T) {
	packets := waittest.Wanted(t, hostileVariable, waittest.Often(200_000))
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceXRC} {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		v := newVictim(t, service)
		if service == wire.ServiceXRC {
			v.makeTarget()
		}
		for round := 0; v.packets < packets; round++ {
			v.harass(r)
			if round%1000 == 0 {
				v.intact()
			}
		}
		v.intact()
		if c := v.engine.Counters(); c.Received != v.stoodFor || c.Delivered+c.Dropped() != c.Received {
			t.Errorf("%d packets: %+v", v.packets, c)
		}
	}
}

// TestHostilePeerOfAnotherWorker is TestHostilePeer with packets that arrive at another engine of the card. Most are
// handed over, unchecked; packets too damaged to identify a queue pair are dropped where they arrive.
func TestHostilePeerOfAnotherWorker(t *testing.T) {
	packets := waittest.Wanted(t, hostileVariable, waittest.Often(50_000))
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceXRC} {
		hostilePeerOfAnotherWorker(t, service, packets)
	}
}

func hostilePeerOfAnotherWorker(t *testing.T, service wire.Service, packets int) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	network := link.NewNetwork(1)
	a, b := newCrew(t, network, 1, 2, func(i int) wire.QPN { return testQP + wire.QPN(i) }), newCrew(t, network, 2, 1, straight)
	a.meetIn(service, a.ends[0], b.ends[0], PathOpen)
	a.ends[0].c.MTU = wire.MTU256
	v := victimOf(a.ends[0], b.ends[0])
	v.arriveAt = a.ends[1].engine
	if service == wire.ServiceXRC {
		v.makeTarget()
	}
	for round := 0; v.packets < packets; round++ {
		v.harassBy(r, func() []byte {
			frame := v.forge(r)
			if r.IntN(8) == 0 {
				frame[r.IntN(len(frame))] ^= 1 << r.IntN(8)
			}
			if r.IntN(64) == 0 {
				frame = frame[:r.IntN(len(frame))]
			}
			return frame
		})
		if round%1000 == 0 {
			v.intact()
		}
	}
	v.intact()
	if c := a.balanced(); c.Received != v.stoodFor || v.engine.Counters().Received == 0 || v.arriveAt.Counters().Received == 0 {
		t.Errorf("service %v, %d packets: %+v", service, v.packets, c)
	}
}

// TestEveryCountInEveryState: packets of all operations with any claimed number of packets, correct and incorrect, and
// various lengths arrive at a queue pair in each state. The checks are those of TestHostilePeer.
func TestEveryCountInEveryState(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC, wire.ServiceXRC} {
		v := newVictim(t, service)
		if service == wire.ServiceXRC {
			v.makeTarget()
		}
		for _, state := range []ib.QPState{ib.QPStateReset, ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS, ib.QPStateSQD, ib.QPStateSQE, ib.QPStateErr} {
			for operation := range wire.Opcode(24) {
				for count := range uint32(wire.MaxPackets) {
					v.bring(r, state)
					h := wire.Transport{
						Opcode: service.Of(operation), DestQP: testQP, PKey: wire.PKeyDefault, Packets: count + 1, PSN: v.c.Responder.ExpectedPSN, AckReq: true,
						RKey: uint32(testKey(1)), Addr: endBase, Length: uint32(min(openLen, 256*(count+1))), SRQN: 5,
					}
					if operation >= wire.OpReadResponseFirst && operation <= wire.OpAtomicAcknowledge {
						h.PSN = v.c.Requester.Oldest()
					}
					length := 256 * int(count+1)
					if r.IntN(4) == 0 {
						length = max(0, length-r.IntN(514))
					}
					v.take(v.seal(&h, length))
				}
			}
			v.intact()
		}
		if c := v.engine.Counters(); c.Received != v.stoodFor || c.Delivered+c.Dropped() != c.Received {
			t.Errorf("service %v, %d packets: %+v", service, v.packets, c)
		}
	}
}

// bring moves the queue pair to a state, with outstanding receive and send requests if it has been in RTS.
func (v *victim) bring(r *rand.Rand, state ib.QPState) {
	if v.qp.State == state {
		return
	}
	v.revive(r)
	v.poll()
	v.engine.Do(func() {
		if state < ib.QPStateRTS {
			v.qp.SetState(ib.QPStateReset)
		}
		for _, s := range statesTo(state) {
			if s > v.qp.State {
				v.qp.SetState(s)
			}
		}
	})
}

// FuzzHostilePeer searches for sequences of packets that TestHostilePeer does not generate.
func FuzzHostilePeer(f *testing.F) {
	f.Add(uint64(1), []byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, seed uint64, packets []byte) {
		r := rand.New(rand.NewPCG(seed, 0))
		v := newVictim(t, wire.ServiceRC)
		v.revive(r)
		for len(packets) >= 8 {
			b := packets[:8]
			packets = packets[8:]
			h := wire.Transport{
				Opcode: wire.Opcode(b[0] % 24), DestQP: testQP, PKey: wire.PKeyDefault, AckReq: b[1]&1 != 0, RKey: uint32(testKey(uint32(b[1] >> 1 & 7))),
				Addr: endBase + uint64(b[2])*64, Length: uint32(b[3]) * 8, Syndrome: wire.Syndrome(b[4]), PSN: v.c.Responder.ExpectedPSN.Plus(uint32(int8(b[5])) & uint32(wire.PSNMask)),
			}
			if b[6]&1 != 0 {
				h.PSN = v.c.Requester.Oldest().Plus(uint32(int8(b[5])) & uint32(wire.PSNMask))
			}
			v.take(v.seal(&h, int(b[7])+int(b[6]>>1)))
		}
		v.intact()
	})
}
