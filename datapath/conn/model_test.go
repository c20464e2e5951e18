// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/ib"
)

// model is the expected effect of a side's requests without loss: each executes once, in order.
type model struct {
	posted   []request // not completed yet
	expected []request // requests that will consume a receive request of the peer
	number   uint32    // number of the next request
	target   []byte    // the peer's target area after all requests are executed
	numbers  [numberCount]uint64
	history  [1 << 10]request // unreliable connection: the last messages, indexed by number
	original []byte           // the areas that are never written
	taken    int              // number of receive requests consumed
}

// request is a request of a side.
type request struct {
	ring.SendConnected
	number   uint32
	slot     uint32
	data     []byte // the data that it sends
	length   int
	from     int    // READ: offset in the peer's area; atomic: index of the operand
	found    uint64 // atomic: expected original value
	signaled bool
}

// learn initializes the model with the peer's memory.
func (s *side) learn() {
	s.posted, s.expected = s.posted[:0], s.expected[:0]
	s.target = append(s.target[:0], s.peer.memory[targetArea:][:targetLen]...)
	for i := range s.numbers {
		s.numbers[i] = binary.NativeEndian.Uint64(s.peer.memory[numberArea+8*i:])
	}
	if s.original == nil {
		s.original = bytes.Clone(s.memory[:targetArea])
	}
	clear(s.history[:])
}

// post posts a random request, if there is room.
func (s *side) post() {
	if s.queue.Outstanding(s.polled) == depth || len(s.posted) == depth || s.state == ib.QPStateErr {
		return
	}
	q := request{number: s.number, slot: s.number % depth, length: s.IntN(300)}
	s.number++
	if q.Opcode = ib.Opcode(s.IntN(10)); !q.Opcode.On(s.Service) {
		q.Opcode = ib.WRSendWithImm
	}
	if s.Service == wire.ServiceUC && q.Opcode == ib.WRSend {
		q.Opcode = ib.WRSendWithImm // which contains its number
	}
	if s.IntN(4) == 0 {
		q.length = s.IntN(mostBytes)
	}
	q.ID, q.Imm = uint64(q.number), q.number
	for _, flag := range []ib.SendFlags{ib.SendSignaled, ib.SendFence, ib.SendSolicited} {
		if s.IntN(3) == 0 {
			q.Flags |= flag
		}
	}
	q.signaled = s.requester.SigAll || q.Flags&ib.SendSignaled != 0
	q.RKey = key
	if s.Service == wire.ServiceXRC {
		q.RemoteSRQN = wire.SRQN(1 + s.IntN(targets))
		q.RKey += ib.RKey(q.RemoteSRQN)
	}
	s.place(&q)
	if q.Opcode.Means().Is(wire.MeansReceive) {
		s.expected = append(s.expected, q)
	}
	s.history[q.number%uint32(len(s.history))] = q
	s.posted = append(s.posted, q)
}

// place posts the request and executes it in the model.
func (s *side) place(q *request) {
	var operands ring.Atomic
	switch means := q.Opcode.Means(); {
	case q.Opcode.Local():
		q.length = 0
	case means.Is(wire.MeansRead):
		q.from = s.IntN(readLen - q.length)
		q.RemoteAddr = readArea + uint64(q.from)
	case means.Is(wire.MeansAtomic):
		q.length, q.from = 8, s.IntN(numberCount)
		q.RemoteAddr = numberArea + 8*uint64(q.from)
		operands = s.operands(q)
	default:
		to := s.IntN(targetLen - q.length)
		q.RemoteAddr = targetArea + uint64(to)
		s.gatherModel(q)
		if means.Is(wire.MeansWrite) {
			copy(s.target[to:], q.data)
		}
	}
	s.put1(q, operands)
}

// gatherModel chooses the data to send.
func (s *side) gatherModel(q *request) {
	from := s.IntN(sourceLen - q.length)
	q.data = s.memory[sourceArea+from:][:q.length] // which never changes
}

// operands returns the operands of an atomic. Half of the atomics change the value.
func (s *side) operands(q *request) (a ring.Atomic) {
	number := &s.numbers[q.from]
	q.found = *number
	a = ring.Atomic{CompareAdd: *number + uint64(s.IntN(2)), Swap: s.Uint64()}
	switch {
	case q.Opcode == ib.WRAtomicFetchAndAdd:
		*number += a.CompareAdd
	case a.CompareAdd == *number:
		*number = a.Swap
	}
	return a
}

// put1 writes the request into its slot: inline, or in pieces.
func (s *side) put1(q *request, operands ring.Atomic) {
	send := q.SendConnected
	at := sinkArea + int(q.slot)*mostBytes
	if q.data != nil {
		at = sourceArea + cap(s.memory) - cap(q.data) // the data is a part of the memory
	}
	var pieces []ib.SGE
	for rest := q.length; !q.Opcode.Local() && (rest > 0 || len(pieces) == 0); {
		n := rest
		if len(pieces) < 2 && !q.Opcode.Means().Is(wire.MeansAtomic) {
			n = s.IntN(rest + 1)
		}
		pieces = append(pieces, ib.SGE{Addr: uint64(at), Length: uint32(n), LKey: ib.LKey(key)})
		at, rest = at+n, rest-n
	}
	inline := q.data != nil && q.length <= inlineMax && s.IntN(2) == 0
	if send.SGECount = uint16(len(pieces)); inline {
		send.SGECount, send.Flags, send.InlineLen = 0, send.Flags|ib.SendInline, uint32(q.length)
	}
	data := s.queue.PutConnected(&send)
	switch {
	case inline:
		copy(data, q.data)
	case q.Opcode == ib.WRBindMW:
		ring.PutBind(data, ring.Bind{Length: uint64(q.number)})
	case q.Opcode.Means().Is(wire.MeansAtomic):
		ring.PutAtomic(data, operands)
		data = data[ring.AtomicLen:]
	}
	for i, one := range pieces {
		if !inline {
			ring.PutSGE(data[i*ring.SGELen:], one)
		}
	}
	s.queue.Publish()
}

// postRecv posts a receive request for one of the free slots.
func (s *side) postRecv() {
	if len(s.slots) == 0 {
		return
	}
	slot := s.slots[0]
	s.slots = s.slots[1:]
	first := uint32(s.IntN(mostBytes))
	at := recvArea + slot*mostBytes
	s.recvs.Put(slot, []ib.SGE{{Addr: at, Length: first, LKey: ib.LKey(key)}, {Addr: at + uint64(first), Length: mostBytes - first, LKey: ib.LKey(key)}})
	s.recvs.Publish()
}

// The following methods implement QueuePair for the side's requester and responder.

func (s *side) part(addr uint64, length uint32) []byte {
	if addr > memoryLen || uint64(length) > memoryLen-addr {
		return nil
	}
	return s.memory[addr:][:length]
}

// Memory returns pieces that end at multiples of pieceLen.
func (s *side) Memory(sge ib.SGE, offset, length int, write bool) (piece []byte, n int, ok bool) {
	if write && sge.Addr < sinkArea {
		s.Fatalf("a request writes to %d", sge.Addr)
	}
	from := sge.Addr + uint64(offset)
	n = min(length, pieceLen-int(from%pieceLen))
	return s.part(from, uint32(n)), n, s.part(sge.Addr, sge.Length) != nil
}

const pieceLen = 88 // contiguous bytes; a multiple of an atomic's operand

func (s *side) WriteRecv(list ring.SGList, offset int, payload []byte) bool {
	for one, rest, ok := list.Next(); ok; one, rest, ok = rest.Next() {
		if into := s.part(one.Addr, one.Length); offset < len(into) {
			payload, offset = payload[copy(into[offset:], payload):], 0
		} else {
			offset -= len(into)
		}
	}
	return true
}

// Target implements QueuePair: each SRQ has its own key to the memory.
func (s *side) Target(number wire.SRQN) bool {
	if s.Service != wire.ServiceXRC || number < 1 || number > targets {
		s.Fatalf("the peer names queue %v", number)
	}
	s.targeted = number
	return true
}

func (s *side) Remote(k ib.RKey, addr uint64, length uint32, access ib.AccessFlags) (memory []byte, ok bool) {
	if length > 0 && (k != key+ib.RKey(s.targeted) || access == ib.AccessRemoteWrite && (addr < targetArea || addr+uint64(length) > numberArea)) {
		s.Fatalf("the peer names %d bytes at %d by %#x", length, addr, k)
	}
	ok = s.part(addr, length) != nil
	return s.part(addr, min(length, uint32(pieceLen-addr%pieceLen))), ok
}

// Bind implements QueuePair. It checks that all requests before the local request are completed.
func (s *side) Bind(_ ib.RKey, _ uint64, b ring.Bind) ib.WCStatus {
	s.isOldest(uint32(b.Length))
	return ib.WCSuccess
}

func (s *side) Register(ib.RKey, uint64, ring.Reg, bool) ib.WCStatus { return ib.WCSuccess }

func (s *side) Move(ib.SGE, int, []byte, bool) bool { return false }

func (s *side) MoveRemote(ib.RKey, uint64, []byte, bool) bool { return false }

func (s *side) Invalidate(ib.RKey, bool) bool { return true }

// isOldest checks that all earlier requests are completed.
func (s *side) isOldest(number uint32) {
	for _, q := range s.posted {
		if q.number == number {
			return
		}
		if q.signaled {
			s.Fatalf("request %d was executed before %d", number, q.number)
		}
	}
}

func (s *side) TakeRecv(r *ring.Recv) bool {
	if !s.posts.Peek(r) {
		return false
	}
	s.posts.Advance()
	return true
}

func (s *side) Credits() wire.Syndrome { return wire.AckCredits(s.posts.Waiting()) }

func (s *side) Fail(state ib.QPState) {
	if s.state != ib.QPStateErr {
		s.enter(state)
	}
}

// Note implements QueuePair. It checks that the only event is EventSQDrained, once after the queue pair has drained.
func (s *side) Note(event ib.EventType) {
	if event != ib.EventSQDrained || s.state != ib.QPStateSQD || s.requester.Begun() != 0 || s.drained {
		s.Fatalf("event %v; drained %v, %s", event, s.drained, s.describe())
	}
	s.drained = true
}

// overrun decides whether the completion overruns the CQ, which ends the queue pair.
func (s *side) overrun() bool {
	if !s.overruns || s.IntN(5000) > 0 {
		return false
	}
	s.overran = true
	s.Fail(ib.QPStateErr)
	return true
}

// CompleteSend checks the result of a request. Earlier requests without completions were unsignaled and have succeeded.
func (s *side) CompleteSend(c Completion) {
	for len(s.posted) > 0 {
		q := s.posted[0]
		s.posted = append(s.posted[:0], s.posted[1:]...)
		s.carriedOut(&q, c.Status == ib.WCSuccess || q.ID != c.ID)
		if q.ID == c.ID {
			s.polled++
			s.status(&q, &c)
			s.overrun()
			return
		}
		if q.signaled {
			s.Fatalf("request %d has no completion: %+v", q.number, c)
		}
	}
	s.Fatalf("a completion of no request: %+v", c)
}

func (s *side) status(q *request, c *Completion) {
	possible := c.Status == ib.WCSuccess && q.signaled && c.Opcode == q.Opcode.Completes() && int(c.ByteLen) == q.length
	if s.Reliable() && c.Solicited {
		possible = c.Status == ib.WCRetryExcErr || c.Status == ib.WCRNRRetryExcErr && s.RNRRetry != foreverRNR || c.Status == ib.WCRemOpErr && s.overruns
	}
	if !possible {
		s.Fatalf("request %d (%v, %d bytes): %+v", q.number, q.Opcode, q.length, c)
	}
}

// carriedOut checks the effect of a successful request. The data of a WRITE stays in the peer's memory until a later
// WRITE overwrites it.
func (s *side) carriedOut(q *request, succeeded bool) {
	sink := s.memory[sinkArea+int(q.slot)*mostBytes:][:q.length]
	switch means := q.Opcode.Means(); {
	case !succeeded:
	case means.Is(wire.MeansRead) && !bytes.Equal(sink, s.peer.memory[readArea+q.from:][:q.length]):
		s.Fatalf("request %d: a READ of %d bytes returned different bytes", q.number, q.length)
	case means.Is(wire.MeansAtomic) && binary.NativeEndian.Uint64(sink) != q.found:
		s.Fatalf("request %d: got original value %d, want %d", q.number, binary.NativeEndian.Uint64(sink), q.found)
	}
}

// CompleteRecv checks a receive completion: on a reliable connection each message consumes one request, in order.
func (s *side) CompleteRecv(c Completion) bool {
	s.slots = append(s.slots, c.ID)
	if c.Status != ib.WCSuccess {
		s.Fatalf("receive: %+v", c)
	}
	from, q := s.peer, request{}
	if s.Reliable() {
		if len(from.expected) == 0 {
			s.Fatalf("unexpected receive completion: %+v", c)
		}
		q = from.expected[0]
		from.expected = append(from.expected[:0], from.expected[1:]...)
	} else if q = from.history[c.Imm%uint32(len(from.history))]; q.number != c.Imm {
		s.Fatalf("receive completion of an old message: %+v", c)
	}
	means := q.Opcode.Means()
	imm, inv := means.Is(wire.MeansImmediate), means.Is(wire.MeansInvalidate)
	if q.RemoteSRQN != s.targeted {
		s.Fatalf("message %d for queue %v is in %v", q.number, q.RemoteSRQN, s.targeted)
	}
	if int(c.ByteLen) != q.length || imm != (c.Flags&ib.WCWithImm != 0) || inv != (c.Flags&ib.WCWithInv != 0) || (imm || inv) && c.Imm != q.number ||
		c.Solicited != (q.Flags&ib.SendSolicited != 0) {
		s.Fatalf("message %d (%v, %d bytes): %+v", q.number, q.Opcode, q.length, c)
	}
	if into := s.memory[recvArea+int(c.ID)*mostBytes:][:q.length]; means.Is(wire.MeansSend) && !bytes.Equal(into, q.data) {
		s.Fatalf("message %d: the bytes differ", q.number)
	}
	s.taken++
	return !s.overrun()
}

// sane checks invariants of the requester and the responder.
func (s *side) sane() {
	r, reads, owed := &s.requester, 0, 0
	for i := range r.works.count {
		w := r.works.at(i)
		reads += w.outstanding(r.newest)
		if asked := w.askedBefore(r.PSN); asked > 0 && w.Opcode == ib.WRRDMARead && r.afterRead.Ahead(w.missing().Plus(uint32(asked))) < 0 {
			s.Fatalf("responses up to PSN %d were requested, but afterRead is %d", w.missing().Plus(uint32(asked)), r.afterRead)
		}
	}
	for i := range s.responder.responses.kept {
		if one := &s.responder.responses.kept[i]; one.sent < one.packets {
			owed++
		}
	}
	begun := s.state == ib.QPStateRTS || s.state == ib.QPStateSQD
	waits := begun && s.Reliable() && r.works.count > 0 && r.oldest != r.newest
	switch {
	case reads != r.reads, reads > int(s.MaxRDAtomic), r.current > r.works.count, owed != s.responder.responses.pending:
		s.Fatalf("%d READs, not %d; %d of %d requests are sent; %d responses are owed, not %d", reads, r.reads, r.current, r.works.count, owed, s.responder.responses.pending)
	case begun && s.Reliable() && (r.PSN.Ahead(r.oldest) < 0 || r.newest.Ahead(r.PSN) < 0 || r.PSN.Ahead(r.afterRead) > maxWindow+askGap):
		s.Fatalf("PSNs %d, %d, %d, %d", r.oldest, r.afterRead, r.PSN, r.newest)
	case begun && (r.window.size < minWindow || r.window.size > maxWindow):
		s.Fatalf("a window of %d packets", r.window.size)
	case waits && r.deadline.IsZero():
		s.Fatalf("no timer for PSN %d", r.oldest)
	}
}

// mayBegin checks that the last request was allowed to begin: not in SQD, and a fenced request only after READs and
// atomics are complete.
func (s *side) mayBegin() {
	r := &s.requester
	last := r.works.at(r.works.count - 1)
	others := r.reads - last.outstanding(r.newest)
	if s.state == ib.QPStateSQD || last.Flags&ib.SendFence != 0 && others > 0 || r.reads > int(s.MaxRDAtomic) || last.local() && r.works.count > 1 {
		s.Fatalf("%v was begun beside %d READs: %s", last.Opcode, others, s.describe())
	}
}

// do performs one random action.
func (w *world) do() {
	s := []*side{w.a, w.b}[w.IntN(2)]
	switch n := w.IntN(1000); {
	case s.state == ib.QPStateErr && n < 100: // the program starts again
		w.deaths++
		w.begin()
	case n < 150:
		s.post()
	case n < 190:
		s.postRecv()
	case n < 400:
		s.turn(1 + w.IntN(32))
	case n < 940:
		w.arrive(w.loss, w.twice, w.overtakes)
	case n < 970:
		w.sleep(time.Duration(w.IntN(1000)) * time.Microsecond)
	case n < 980:
		w.untilDue()
	case n < 981:
		w.sleep(time.Duration(w.IntN(48)-1) * time.Hour) // the clock jumps, forward or backward
	case n < 992:
	case s.state == ib.QPStateRTS:
		s.NotifyDrained, s.drained = w.IntN(2) == 0, false
		s.enter(ib.QPStateSQD)
	case s.state == ib.QPStateSQD:
		s.enter(ib.QPStateRTS)
	}
	s.sane()
}

// manyRetries is a number of retries that is sufficient to recover from earlier losses once the network loses no
// packets.
const manyRetries = 3

// calm runs without loss until all posted requests are executed, and compares with the model.
func (w *world) calm() {
	mayEnd := w.a.mayEnd() || w.b.mayEnd()
	for rounds := 0; ; rounds++ {
		moved := false
		for _, s := range []*side{w.a, w.b} {
			if s.state == ib.QPStateErr {
				if !mayEnd && !w.a.overran && !w.b.overran {
					w.Fatalf("a connection ended without loss: %s %s", w.a.describe(), w.b.describe())
				}
				w.deaths++
				w.begin()
				return
			}
			if s.state == ib.QPStateSQD {
				s.enter(ib.QPStateRTS)
			}
			for len(s.slots) > 0 {
				s.postRecv()
			}
			moved = s.turn(64) || moved
		}
		for moved = moved || len(w.flying) > 0; len(w.flying) > 0; {
			w.arrive(0, 0, 0)
		}
		if !moved && !w.untilDue() && w.a.idle() && w.b.idle() {
			break
		}
		if rounds > 20_000 {
			w.Fatalf("requests do not complete: %s %s", w.a.describe(), w.b.describe())
		}
	}
	w.a.compare()
	w.b.compare()
}

// mayEnd reports whether the connection has failed, or may fail, because of earlier losses.
func (s *side) mayEnd() bool {
	return s.state == ib.QPStateErr || s.requester.retries < manyRetries || s.RNRRetry != foreverRNR
}

func (s *side) idle() bool { return s.requester.Queue.Waiting() == 0 && !s.responder.Owes() }

func (s *side) describe() string {
	r := &s.requester
	return fmt.Sprintf("%v, %d begun, %d waiting, PSNs %d, %d, %d, deadline %v, rnrWait %v, again %v;", s.state, r.works.count, r.Queue.Waiting(), r.oldest, r.PSN, r.newest, r.deadline, r.rnrWait, r.again)
}

// compare checks that all requests of a side are executed exactly once, without other effects.
func (s *side) compare() {
	for _, q := range s.posted {
		if q.signaled {
			s.Fatalf("request %d is not completed", q.number)
		}
		s.carriedOut(&q, true)
	}
	s.posted = s.posted[:0]
	if !bytes.Equal(s.memory[:targetArea], s.original) {
		s.Fatal("read-only memory was written")
	}
	if s.Service == wire.ServiceUC {
		return
	}
	if len(s.expected) != 0 || !bytes.Equal(s.target, s.peer.memory[targetArea:][:targetLen]) {
		s.Fatalf("%d messages have not arrived, or WRITEs have other bytes than the model's", len(s.expected))
	}
	for i, number := range s.numbers {
		if got := binary.NativeEndian.Uint64(s.peer.memory[numberArea+8*i:]); got != number {
			s.Fatalf("number %d is %d, not %d", i, got, number)
		}
	}
}

// stepsVariable is the number of random steps of TestModel.
const stepsVariable = "ROCED_CONN"

// TestModel takes random steps with two connected sides, and compares the results with a model without packets. The
// steps post requests and receive requests, lose, duplicate and reorder packets, fill links and completion queues,
// advance the time, make clocks jump, and drain queue pairs.
func TestModel(t *testing.T) {
	steps, seed := waittest.Wanted(t, stepsVariable, waittest.Often(3_000_000)), rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var sum Counters
	taken, deaths, worlds := 0, 0, 0
	for step := 0; step < steps; worlds++ {
		service := wire.ServiceRC
		switch worlds % 4 {
		case 2:
			service = wire.ServiceXRC
		case 3:
			service = wire.ServiceUC
		}
		w := newWorld(t, r, service)
		for range 10 {
			for range 1 + r.IntN(2000) {
				w.do()
				step++
			}
			w.calm()
		}
		for _, s := range []*side{w.a, w.b} {
			sum.Retransmits, sum.Timeouts = sum.Retransmits+s.counters.Retransmits, sum.Timeouts+s.counters.Timeouts
			sum.Probes += s.counters.Probes
			sum.SequenceNAKs, sum.RNRNAKs = sum.SequenceNAKs+s.counters.SequenceNAKs, sum.RNRNAKs+s.counters.RNRNAKs
			taken += s.taken
		}
		deaths += w.deaths
	}
	t.Logf("%d worlds, %d messages received, %d connections ended; %+v", worlds, taken, deaths, sum)
}
