// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// end is one of the two ends of a connection. Each has its own engine, whose rounds the test runs.
type end struct {
	testing.TB
	engine  *Engine
	port    *countedPort
	session *Session
	bell    *ring.Doorbell
	qp      *QP
	c       *Connection
	send    *ring.SendProducer
	recv    *ring.RecvProducer
	cq      *ring.CompletionConsumer
	memory  []byte                // of all regions
	regions map[uint32]*region.MR // 1: with all access; 2: of another PD; 3: without remote access
	polled  uint32
	events  []ib.EventType
	states  []ib.QPState
	fatal   bool // one of these changes was fatal
	mac     wire.MAC
	gid     wire.GID
}

const (
	endMemory = 16 << 20
	endDepth  = 256
	endBase   = 0x7f00_0000_0000 // of region 1: an address as in C programs
)

// countedPort counts sent frames.
type countedPort struct {
	link.Port
	frames int
}

func (p *countedPort) Commit(length int) {
	p.frames++
	p.Port.Commit(length)
}

// pairOf holds two connected ends on an in-memory network.
type pairOf struct {
	*testing.T
	network *link.Network
	a, b    *end
}

// connect returns two ends in RTS. change modifies the default attributes.
func connect(t *testing.T, service wire.Service, seed uint64, change func(c *Connection)) *pairOf {
	t.Helper()
	p := &pairOf{T: t, network: link.NewNetwork(seed)}
	p.a, p.b = newEnd(t, p.network, 1), newEnd(t, p.network, 2)
	p.a.meet(p.b, service, change)
	p.b.meet(p.a, service, change)
	return p
}

// newEnd returns an end that uses no long packets until takesLong.
func newEnd(t testing.TB, network *link.Network, host byte) *end {
	t.Helper()
	e := &end{TB: t, memory: make([]byte, endMemory), regions: map[uint32]*region.MR{}, mac: wire.MAC{2, 0, 0, 0, 0, host}, bell: ring.NewDoorbell(ring.Alloc(ring.DoorbellSize))}
	e.gid = gidOf("10.0.0.0")
	e.gid[15] = host
	e.port = &countedPort{Port: network.Port(e.mac)}
	e.port.SetWatched(true)
	var err error
	if e.engine, err = newAlone(Config{Link: e.port, MTU: wire.MTU1024}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.engine.Close(); err != nil {
			t.Error(err)
		}
	})
	e.session = NewSession(e.bell)
	e.engine.Do(func() {
		e.session.join(e.engine)
		e.engine.tables.setAddresses([]wire.GID{e.gid})
		all := ib.AccessRemoteRead | ib.AccessRemoteWrite | ib.AccessRemoteAtomic | ib.AccessMWBind
		e.setMR(1, region.MR{PD: testPD, Write: true, Remote: all})
		e.setMR(2, region.MR{PD: testPD + 1, Write: true, Remote: all})
		e.setMR(3, region.MR{PD: testPD, Write: true})
	})
	e.makeQueues()
	return e
}

// takesLong permits long packets, if the other end permits them too.
func (e *end) takesLong() { e.engine.Do(func() { e.port.SetWatched(false) }) }

// takesLong permits long packets at both ends.
func (p *pairOf) takesLong() {
	p.a.takesLong()
	p.b.takesLong()
}

// setMR registers a region of the end's memory. It runs in Do.
func (e *end) setMR(number uint32, mr region.MR) {
	mr.LKey, mr.Base, mr.Memory = testKey(number), endBase, e.memory
	e.regions[number] = &mr
	e.session.SetMR(&mr)
}

func (e *end) makeQueues() {
	g := ring.CompletionGeometry(4 * endDepth)
	memory := ring.Alloc(g.Size())
	producer, err := ring.NewCompletionProducer(memory, g)
	if err != nil {
		e.Fatal(err)
	}
	e.cq, _ = ring.NewCompletionConsumer(memory, g)
	cq := &CQ{Session: e.session, Queue: producer, Wake: func() {}, Notify: func() {}, QPs: map[*QP]struct{}{}, NoteOverrun: func() { e.Error("overrun") }}
	sendShape, recvShape := ring.ConnectedGeometry(endDepth, 4, 64), ring.RecvGeometry(endDepth, 4)
	sendMemory, recvMemory := ring.Alloc(sendShape.Size()), ring.Alloc(recvShape.Size())
	e.qp = &QP{
		Session: e.session, Number: testQP, PD: testPD, RecvPD: testPD, DoorbellIndex: 3, PKey: wire.PKeyDefault, SendCQ: cq, RecvCQ: cq,
		NoteState: func(s ib.QPState, fatal bool) { e.states, e.fatal = append(e.states, s), e.fatal || fatal }, NoteEvent: func(t ib.EventType) { e.events = append(e.events, t) }, NoteLastWQE: func() {},
	}
	e.qp.MaxSendSGE, e.qp.MaxInline = sendShape.SendRoom()
	e.qp.Send, _ = ring.NewSendConsumer(sendMemory, sendShape)
	e.qp.Recv, _ = ring.NewRecvConsumer(recvMemory, recvShape)
	e.send, _ = ring.NewSendProducer(sendMemory, sendShape)
	e.recv, _ = ring.NewRecvProducer(recvMemory, recvShape)
}

// meet connects the end's queue pair to another's.
func (e *end) meet(peer *end, service wire.Service, change func(c *Connection)) {
	c := &Connection{
		PeerQPN: testQP, Peer: peer.gid, Path: new(Path), Template: wire.NewTemplate(wire.Path{Source: e.gid, Dest: peer.gid, Unsealed: true}),
		Attr: conn.Attr{
			Service: service, MTU: wire.MTU1024, Access: ib.AccessRemoteRead | ib.AccessRemoteWrite | ib.AccessRemoteAtomic,
			MinRNRTimer: 1, MaxDestRDAtomic: 4, Timeout: 8, RetryCnt: 7, RNRRetry: 7, MaxRDAtomic: 4,
		},
	}
	c.Responder.ExpectedPSN = wire.PSNMask - 5
	e.c = c
	if change != nil {
		change(c)
	}
	e.engine.Do(func() {
		e.qp.Serve(c)
		e.engine.AddQP(e.qp)
		c.Path.set(e.engine, PathAttr{State: PathOpen, DestMAC: peer.mac, FromMAC: e.mac})
		e.qp.SetState(ib.QPStateInit)
		e.qp.SetState(ib.QPStateRTR)
		e.qp.SetPSN(c.Responder.ExpectedPSN)
		e.qp.SetState(ib.QPStateRTS)
	})
}

// round runs both engines once, and reports whether one of them did any work.
func (p *pairOf) round() (moved bool) {
	for _, e := range []*end{p.a, p.b} {
		e.engine.lease.Lock()
		moved = e.engine.runRound() || moved
		e.engine.lease.Unlock()
	}
	return moved
}

// post posts a request. operands are those of an atomic; the SGEs are in region 1.
func (e *end) post(s ring.SendConnected, operands ring.Atomic, sges ...ib.SGE) {
	e.Helper()
	if e.send.Outstanding(e.polled) == endDepth {
		e.Fatal("the send queue is full")
	}
	s.SGECount = uint16(len(sges))
	data := e.send.PutConnected(&s)
	if s.Opcode == ib.WRAtomicCmpAndSwp || s.Opcode == ib.WRAtomicFetchAndAdd {
		ring.PutAtomic(data, operands)
		data = data[ring.AtomicLen:]
	}
	for i, sge := range sges {
		ring.PutSGE(data[i*ring.SGELen:], sge)
	}
	e.send.Publish()
	if e.bell.Ring(e.qp.DoorbellIndex) {
		e.engine.doorbells.call(e.session)
	}
}

// at returns an SGE of a part of region 1.
func at(from, length int) ib.SGE {
	return ib.SGE{Addr: endBase + uint64(from), Length: uint32(length), LKey: testKey(1)}
}

// to returns a request that accesses the peer's region 1 at an offset.
func to(o ib.Opcode, from int) (s ring.SendConnected) {
	s.Opcode, s.Flags = o, ib.SendSignaled
	s.RemoteAddr, s.RKey = endBase+uint64(from), ib.RKey(testKey(1))
	return s
}

func (e *end) postRecv(id uint64, sges ...ib.SGE) {
	e.recv.Put(id, sges)
	e.recv.Publish()
}

// poll returns the completions in the CQ.
func (e *end) poll() (all []ring.CQE) {
	for e.cq.Available(1) > 0 {
		var c ring.CQE
		e.cq.Get(&c)
		if !c.Opcode.IsRecv() {
			e.polled++
		}
		all = append(all, c)
	}
	e.cq.Publish()
	return all
}

// await runs both ends until they have at least a and b completions, and returns these.
func (p *pairOf) await(a, b int) (ofA, ofB []ring.CQE) {
	p.Helper()
	for idle := 0; len(ofA) < a || len(ofB) < b; {
		moved := p.round()
		x, y := p.a.poll(), p.b.poll()
		ofA, ofB = append(ofA, x...), append(ofB, y...)
		if moved || len(x)+len(y) > 0 {
			idle = 0
		} else if idle++; idle > 50_000_000 {
			p.Fatalf("completions: %d of %d, %d of %d; %+v %+v", len(ofA), a, len(ofB), b, p.a.c.Requester.PSN, p.b.c.Requester.PSN)
		}
	}
	return ofA, ofB
}

// expect checks the statuses of completions.
func expect(t *testing.T, all []ring.CQE, statuses ...ib.WCStatus) {
	t.Helper()
	if len(all) != len(statuses) {
		t.Fatalf("%d completions, not %d: %+v", len(all), len(statuses), all)
	}
	for i, s := range statuses {
		if all[i].Status != s {
			t.Errorf("completion %d: %v, not %v", i, all[i].Status, s)
		}
	}
}

// fill puts random bytes into a part of the memory.
func (e *end) fill(r *rand.Rand, from, length int) []byte {
	part := e.memory[from : from+length]
	var eight [8]byte
	for rest := part; len(rest) > 0; {
		binary.NativeEndian.PutUint64(eight[:], r.Uint64())
		rest = rest[copy(rest, eight[:]):]
	}
	return part
}

func number(memory []byte) uint64 { return binary.NativeEndian.Uint64(memory) }

// packet returns a packet of the peer, for the requester or the responder.
func packet(t testing.TB, h wire.Transport) *wire.Packet {
	t.Helper()
	h.DestQP, h.PKey = testQP, wire.PKeyDefault
	template, frame, p := wire.NewTemplate(wire.Path{Source: peerGID, Dest: ownGID}), make([]byte, 512), new(wire.Packet)
	if fault := wire.Parse(frame[:template.SealTransport(frame, &h, 0)], p); fault != wire.FaultNone {
		t.Fatal(fault)
	}
	return p
}

// owe makes the end send an acknowledgement of all packets that it has received, as it does for a duplicate.
func (e *end) owe() {
	e.Helper()
	r := &e.c.Responder
	if reason := r.Receive(packet(e, wire.Transport{Opcode: wire.OpSendOnly, PSN: r.ExpectedPSN.Plus(uint32(wire.PSNMask))})); reason != conn.Duplicate || !r.Owes() {
		e.Fatalf("%v: nothing is owed", reason)
	}
}
