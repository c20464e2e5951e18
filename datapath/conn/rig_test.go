// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// world consists of two connected sides and an unreliable network between them, in simulated time.
type world struct {
	testing.TB
	*rand.Rand
	now    time.Time
	a, b   *side
	flying []sentFrame
	free   [][]byte
	// probabilities for a packet that arrives
	loss, twice, overtakes float64
	ahead                  *Ahead
	overruns               bool // completions sometimes overrun the CQ
	deaths                 int
}

// sentFrame is a packet in flight.
type sentFrame struct {
	to    *side
	frame []byte
}

const (
	depth     = 16 // maximum number of posted requests, and receive requests, of a side
	mostBytes = 4000
	inlineMax = 64
	manyFly   = 400  // maximum number of packets in flight; further ones are lost
	mostLong  = 4096 // bytes of a long packet's payload
	frameLen  = wire.MaxHeaders + mostLong + wire.MaxTrailer
	key       = ib.RKey(0x777)
	targets   = 3 // of XRC: shared receive queues of a side

	// The areas of a side's memory. Two never change: the data that requests send, and the data that the peer reads.
	// The peer writes to a third. Each receive request, and each result of a READ or atomic, has its own slot.
	sourceArea  = 0
	sourceLen   = 16 << 10
	readArea    = sourceArea + sourceLen
	readLen     = 16 << 10
	targetArea  = readArea + readLen
	targetLen   = 16 << 10
	numberArea  = targetArea + targetLen
	numberCount = 4
	recvArea    = numberArea + 8*numberCount
	sinkArea    = recvArea + depth*mostBytes
	memoryLen   = sinkArea + depth*mostBytes
)

var start = time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)

// newWorld returns a world with random attributes and a random network.
func newWorld(t testing.TB, r *rand.Rand, service wire.Service) *world {
	w := &world{TB: t, Rand: r, now: start}
	if r.IntN(4) > 0 {
		w.loss, w.twice, w.overtakes = r.Float64()*0.1, r.Float64()*0.1, r.Float64()*0.1
	}
	w.overruns = r.IntN(4) == 0
	attr := Attr{
		Service: service, MTU: []wire.MTU{wire.MTU256, wire.MTU1024}[r.IntN(2)], Access: ib.AccessRemoteRead | ib.AccessRemoteWrite | ib.AccessRemoteAtomic,
		MinRNRTimer: uint8(r.IntN(32)), MaxDestRDAtomic: uint8(1 + r.IntN(4)), Timeout: uint8(1 + r.IntN(31)), RetryCnt: 7, RNRRetry: 7,
		Long: r.IntN(3) == 0,
	}
	if r.IntN(4) == 0 {
		attr.RetryCnt, attr.RNRRetry = uint8(r.IntN(8)), uint8(r.IntN(8))
	}
	attr.MaxRDAtomic = attr.MaxDestRDAtomic
	if r.IntN(3) > 0 {
		w.ahead = NewAhead(r.IntN(200))
	}
	w.a, w.b = newSide(w, attr), newSide(w, attr)
	w.a.peer, w.b.peer = w.b, w.a
	w.begin()
	return w
}

// begin connects the sides, with new PSNs.
func (w *world) begin() {
	for _, f := range w.flying {
		w.free = append(w.free, f.frame)
	}
	w.flying = w.flying[:0]
	for _, s := range []*side{w.a, w.b} {
		s.enter(ib.QPStateReset)
		s.requester.PSN = wire.PSN(w.Uint32()) & wire.PSNMask
		s.peer.responder.ExpectedPSN = s.requester.PSN
		s.clear()
		for _, state := range []ib.QPState{ib.QPStateInit, ib.QPStateRTR, ib.QPStateRTS} {
			s.enter(state)
		}
	}
	w.a.learn()
	w.b.learn()
}

// put sends a packet: it is lost if too many are in flight.
func (w *world) put(from *side, p *Packet) {
	frame := w.frame()
	copy(frame[from.template.PayloadOffsetOf(p.Opcode):], from.payload[:p.Length])
	p.DestQP, p.SourceQP, p.PKey = 1, 1, wire.PKeyDefault
	n := from.template.SealTransport(frame, &p.Transport, p.Length)
	if len(w.flying) == manyFly {
		w.free = append(w.free, frame)
		return
	}
	w.flying = append(w.flying, sentFrame{from.peer, frame[:n]})
}

func (w *world) frame() []byte {
	if last := len(w.free) - 1; last >= 0 {
		frame := w.free[last]
		w.free = w.free[:last]
		return frame[:frameLen]
	}
	return make([]byte, frameLen)
}

// arrive delivers a packet in flight, or loses it.
func (w *world) arrive(loss, twice, overtakes float64) {
	if len(w.flying) == 0 {
		return
	}
	i := 0
	if w.Float64() < overtakes {
		i = w.IntN(len(w.flying))
	}
	f := w.flying[i]
	stays := w.Float64() < twice
	if !stays {
		w.flying = append(w.flying[:i], w.flying[i+1:]...)
	}
	if w.Float64() >= loss {
		f.to.hear(f.frame)
	}
	if !stays {
		w.free = append(w.free, f.frame)
	}
}

// sleep advances the time, or sets it back if d is negative, and handles expired deadlines.
func (w *world) sleep(d time.Duration) {
	w.now = w.now.Add(d)
	for _, s := range []*side{w.a, w.b} {
		if at := s.requester.Deadline(); !at.IsZero() && !at.After(w.now) {
			s.requester.Expire(w.now)
		}
	}
}

// untilDue advances the time to the next deadline; false if no deadline is set.
func (w *world) untilDue() bool {
	var next time.Time
	for _, s := range []*side{w.a, w.b} {
		if at := s.requester.Deadline(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return false
	}
	w.sleep(max(0, next.Sub(w.now)))
	return true
}

// side is one side of a connection: requester, responder, the state of their queue pair, and a model of its requests.
type side struct {
	*world
	Attr
	requester Requester
	responder Responder
	counters  Counters
	peer      *side
	template  wire.Template
	packet    Packet
	payload   [mostLong]byte

	state    ib.QPState
	drained  bool      // it was reported
	overran  bool      // a completion overran the CQ
	targeted wire.SRQN // of XRC: the queue of the current packet
	queue    *ring.SendProducer
	polled   uint32
	recvs    *ring.RecvProducer
	posts    *ring.RecvConsumer
	slots    []uint64 // of receive requests that are not posted
	memory   []byte
	model
}

func newSide(w *world, attr Attr) *side {
	s := &side{world: w, Attr: attr, memory: make([]byte, memoryLen)}
	ends := wire.GIDFromAddr(netip.AddrFrom4([4]byte{10, 0, 0, 1}))
	s.template = wire.NewTemplate(wire.Path{Source: ends, Dest: ends})
	g, produce, consume := ring.ConnectedGeometry(depth, 4, inlineMax), ring.NewSendProducer, ring.NewSendConsumer
	if attr.Service == wire.ServiceXRC {
		g, produce, consume = ring.XRCGeometry(depth, 4, inlineMax), ring.NewXRCSendProducer, ring.NewXRCSendConsumer
	}
	memory := ring.Alloc(g.Size())
	var err error
	if s.queue, err = produce(memory, g); err != nil {
		w.Fatal(err)
	}
	s.requester = Requester{Attr: &s.Attr, QP: s, Counters: &s.counters, SigAll: w.IntN(2) == 0}
	if s.requester.Queue, err = consume(memory, g); err != nil {
		w.Fatal(err)
	}
	shape := ring.RecvGeometry(depth, 2)
	memory = ring.Alloc(shape.Size())
	if s.recvs, err = ring.NewRecvProducer(memory, shape); err != nil {
		w.Fatal(err)
	}
	if s.posts, err = ring.NewRecvConsumer(memory, shape); err != nil {
		w.Fatal(err)
	}
	if w.ahead != nil {
		s.responder.Ahead = w.ahead
	}
	s.requester.Mends = w.IntN(3) > 0
	s.requester.MaxSendSGE, s.requester.MaxInline = 4, inlineMax
	s.responder.Attr, s.responder.QP = &s.Attr, s
	for i := range s.memory[:numberArea] {
		s.memory[i] = byte(w.Uint32())
	}
	return s
}

// enter corresponds to SetState of the engine.
func (s *side) enter(state ib.QPState) {
	s.requester.Enter(state)
	s.responder.Enter(state)
	s.state = state
}

// clear empties the queues.
func (s *side) clear() {
	s.requester.Queue.Skip()
	s.polled = s.queue.Signaled()
	s.posts.Skip()
	s.slots, s.overran = s.slots[:0], false
	for i := range uint64(depth) {
		s.slots = append(s.slots, i)
	}
}

// hear handles a received frame, as an engine does after it has found the queue pair.
func (s *side) hear(frame []byte) {
	var p wire.Packet
	if fault := wire.Parse(frame, &p); fault != wire.FaultNone {
		s.Fatalf("malformed packet sent: %v", fault)
	}
	switch {
	case !s.state.Receives():
	case p.BTH().Opcode().Means().Is(wire.MeansAnswer):
		s.requester.Receive(s.now, &p)
	default:
		s.responder.Receive(&p)
	}
}

// turn sends some packets, up to the limit of a turn.
func (s *side) turn(most int) (moved bool) {
	limits := flight.Limits{Window: []int{1, 16, 1 << 10}[s.IntN(3)], Few: 8 * s.IntN(2), Begun: s.IntN(2) == 0, Paced: s.IntN(8) == 0}
	if s.Long {
		limits.Longest = []int{0, 600, 2048, mostLong}[s.IntN(4)]
	}
	for range most {
		step, begun := Idle, s.requester.Begun()
		switch p := &s.packet; {
		case s.responder.Owes():
			if step = s.responder.Next(limits.Longest, p); step == Ready {
				if s.responder.Fill(p, s.payload[:p.Length]) != Taken {
					step = Worked
				}
			}
		case s.state == ib.QPStateRTS || s.state == ib.QPStateSQD:
			limits.Part = []int{0, 1, 3, 64}[s.IntN(4)]
			limits.Grant = []int{0, 5, flight.Unlimited}[s.IntN(3)]
			limits.Reads = []int{8, flight.Unlimited}[s.IntN(2)]
			if step = s.requester.Next(&limits, p); step == Limited {
				limits.Grant, limits.Begun, limits.Reads = flight.Unlimited, false, flight.Unlimited
				if step = s.requester.Next(&limits, p); step == Limited {
					s.Fatal("a packet exceeds unlimited limits")
				}
			}
			if step == Ready && s.IntN(50) > 0 { // else the link has no room
				step = s.requester.Fill(s.now, p, s.payload[:p.Length])
			} else if step == Ready {
				step = Idle
			}
		}
		if s.requester.Begun() > begun {
			s.mayBegin()
		}
		switch step {
		case Idle:
			s.requester.Queue.Publish()
			return moved
		case Ready:
			s.put(s, &s.packet)
			if s.Service == wire.ServiceUC {
				s.requester.Sent()
			}
		}
		moved = true
	}
	s.requester.Queue.Publish()
	return moved
}
