// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// sender is an additional queue pair of a rig. Its CQ has room for the completions of all requests in its queues.
type sender struct {
	qp   *QP
	send *ring.SendProducer
	recv *ring.RecvProducer
	cq   *ring.CompletionConsumer
}

func (r *rig) addSender(index, depth uint32) *sender {
	r.Helper()
	keep := *r
	defer func() { *r = keep }()
	cq := r.makeCQ(4 * depth)
	s := &sender{cq: r.cq}
	r.makeQP(cq)
	s.qp = r.qp
	s.qp.Number, s.qp.DoorbellIndex = testQP+wire.QPN(index), index
	sendShape, recvShape := ring.SendGeometry(depth, 1, 16), ring.RecvGeometry(depth, 1)
	sendMemory, recvMemory := ring.Alloc(sendShape.Size()), ring.Alloc(recvShape.Size())
	var errs [4]error
	s.qp.Send, errs[0] = ring.NewSendConsumer(sendMemory, sendShape)
	s.qp.Recv, errs[1] = ring.NewRecvConsumer(recvMemory, recvShape)
	s.send, errs[2] = ring.NewSendProducer(sendMemory, sendShape)
	s.recv, errs[3] = ring.NewRecvProducer(recvMemory, recvShape)
	for _, err := range errs {
		if err != nil {
			r.Fatal(err)
		}
	}
	r.engine.Do(func() {
		r.engine.AddQP(s.qp)
		s.qp.SetState(ib.QPStateRTS)
	})
	return s
}

func (s *sender) post(r *rig, n int, wr ring.Send) {
	wr.Opcode, wr.Flags, wr.RemoteQPN, wr.RemoteQKey = ib.WRSend, ib.SendSignaled, peerQP, testQKey
	for range n {
		s.send.Put(&wr)
	}
	s.send.Publish()
	r.doorbell.Ring(s.qp.DoorbellIndex)
}

func (r *rig) round() bool {
	r.engine.lease.Lock()
	defer r.engine.lease.Unlock()
	return r.engine.runRound()
}

// A round with many full send queues also receives frames, and sends no more than its budget; the queue pairs take
// turns.
func TestRoundsAreBounded(t *testing.T) {
	const senders, depth = 100, 256
	r := newRig(t)
	var all []*sender
	for i := range uint32(senders) {
		s := r.addSender(100+i, depth)
		s.post(r, depth, ring.Send{})
		all = append(all, s)
	}
	odd := r.addSender(99, 8) // the budget ends within a turn
	odd.post(r, 5, ring.Send{})
	for round := 1; len(r.link.out) < senders*depth+5; round++ {
		before := len(r.link.out)
		r.link.in = [][]byte{datagram(nil)}
		if !r.round() {
			t.Fatalf("round %d did no work", round)
		}
		if sent := len(r.link.out) - before; sent == 0 || sent > sendBudget {
			t.Fatalf("round %d sent %d requests", round, sent)
		}
		if c := r.engine.counters; c.Received != uint64(round) {
			t.Fatalf("received %d frames in %d rounds", c.Received, round)
		}
		least, most := depth, 0
		for _, s := range all {
			done := depth - int(s.send.Outstanding(s.send.Signaled()))
			least, most = min(least, done), max(most, done)
		}
		if most-least > sendTurn {
			t.Fatalf("round %d: one queue pair has sent %d, another %d", round, most, least)
		}
	}
}

// Flushing is limited per round, keeps the order, and continues to the end without further calls. A change that begins
// it returns after changeBudget requests.
func TestFlushIsBounded(t *testing.T) {
	const depth = 4 * changeBudget
	r := newRig(t)
	s := r.addSender(100, depth)
	r.engine.Do(func() { s.qp.SetState(ib.QPStateSQD) })
	s.post(r, depth, ring.Send{})
	for i := range uint64(depth) {
		s.recv.Put(i, nil)
	}
	s.recv.Publish()
	r.engine.Do(func() { s.qp.SetState(ib.QPStateErr) })
	if n := s.cq.Available(2 * depth); n != changeBudget {
		t.Fatalf("the change flushed %d requests", n)
	}
	last := uint32(changeBudget)
	for r.round() {
		n := s.cq.Available(2 * depth)
		if n-last > sendBudget {
			t.Fatalf("a round flushed %d requests", n-last)
		}
		last = n
	}
	if last != 2*depth || r.engine.more() {
		t.Fatalf("%d flushed of %d, more %v", last, 2*depth, r.engine.more())
	}
	var c ring.CQE
	for i := range 2 * depth {
		s.cq.Get(&c)
		if want := ib.WCSend; i >= depth {
			if want = ib.WCRecv; c.ID != uint64(i-depth) {
				t.Fatalf("completion %d is of request %d", i, c.ID)
			}
		} else if c.Opcode != want || c.Status != ib.WCWRFlushErr {
			t.Fatalf("completion %d: %+v", i, c)
		}
	}
}

// A queue pair that is reset in the middle of its flush completes nothing more.
func TestResetDuringFlush(t *testing.T) {
	r := newRig(t)
	s := r.addSender(100, 4*changeBudget)
	r.engine.Do(func() { s.qp.SetState(ib.QPStateSQD) })
	s.post(r, 4*changeBudget, ring.Send{})
	r.engine.Do(func() { s.qp.SetState(ib.QPStateErr) })
	r.engine.Do(func() { s.qp.SetState(ib.QPStateReset) })
	r.run()
	if n := s.cq.Available(1 << 20); n != changeBudget || r.engine.more() {
		t.Errorf("%d completions, more %v", n, r.engine.more())
	}
}

// fullGroup attaches a number of queue pairs to a group; each has a receive request for each message.
func (r *rig) fullGroup(mgid wire.GID, members, messages int) (qps []*QP, senders []*sender) {
	for i := range members {
		s := r.addSender(uint32(100+i), uint32(messages))
		for id := range uint64(messages) {
			s.recv.Put(id, []ib.SGE{piece(0, 100)})
		}
		s.recv.Publish()
		qps, senders = append(qps, s.qp), append(senders, s)
	}
	r.engine.Do(func() { r.engine.setGroup(mgid, qps) })
	return qps, senders
}

var bigGroup = wire.GID{10: 0xff, 11: 0xff, 12: 239, 13: 9, 14: 9, 15: 9}

// A frame to a group with many members is delivered in several rounds, once to each member, and its memory is kept
// until the end. The same applies to a group message from this device. The rounds also send meanwhile.
func TestFanOutIsBounded(t *testing.T) {
	const members, messages = 3*receiveBudget + 7, 3
	for _, loop := range []bool{false, true} {
		t.Run(fmt.Sprintf("from here %v", loop), func(t *testing.T) {
			r := newRig(t)
			_, all := r.fullGroup(bigGroup, members, messages)
			other := r.addSender(99, 512)
			r.run()
			other.post(r, 512, ring.Send{})
			if loop {
				r.engine.Do(func() {
					ah := r.ah(PathAttr{State: PathOpen, DestMAC: wire.MulticastMAC(bigGroup)}, bigGroup)
					ah.Group, ah.Dest = true, bigGroup
					r.session.SetAH(9, ah)
				})
				for range messages {
					s := ring.Send{Opcode: ib.WRSend, AH: 9, RemoteQPN: wire.QPNMulticast, RemoteQKey: testQKey}
					r.send.Put(&s)
				}
				r.send.Publish()
				r.doorbell.Ring(3)
			} else {
				for range messages {
					r.link.in = append(r.link.in, toGroup(bigGroup, []byte("to all")))
				}
			}
			delivered, released := uint64(0), r.link.released
			for r.round() {
				c := &r.engine.counters
				if step := c.Delivered - delivered; step > receiveBudget {
					t.Fatalf("%d copies in a round", step)
				}
				delivered = c.Delivered
				if c.Received+c.Copies != c.Delivered+c.Dropped() {
					t.Fatalf("between rounds: %+v", c)
				}
				if !loop && delivered < members*messages && (r.link.released != released || len(r.link.out) == 0) {
					t.Fatalf("frame given back %v, %d frames sent", r.link.released != released, len(r.link.out))
				}
			}
			for i, s := range all {
				if n := s.cq.Available(messages + 1); n != messages {
					t.Fatalf("member %d has %d messages", i, n)
				}
			}
			if c := r.engine.counters; c.Copies != (members-1)*messages || c.Dropped() != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// Each member gets its copy when the budget ends at, before or after the last member.
func TestFanOutEndsNearTheBudget(t *testing.T) {
	for members := receiveBudget - 3; members <= receiveBudget+3; members++ {
		r := newRig(t)
		_, all := r.fullGroup(bigGroup, members, 1)
		r.link.in = [][]byte{toGroup(bigGroup, nil)}
		r.run()
		for i, s := range all {
			if n := s.cq.Available(2); n != 1 {
				t.Errorf("member %d of %d has %d messages", i, members, n)
			}
		}
	}
}

// A round that only sends reports work.
func TestSendingIsWork(t *testing.T) {
	r := newRig(t)
	s := r.addSender(100, 8*sendTurn)
	r.run()
	s.post(r, 8*sendTurn, ring.Send{})
	for before := 0; before < 8*sendTurn; before = len(r.link.out) {
		if !r.round() {
			t.Fatalf("a round sent %d packets and reports no work", len(r.link.out)-before)
		}
	}
}

// A queue pair that is detached during a fanout gets no more copies; the others do.
func TestDetachDuringFanOut(t *testing.T) {
	const members = 3 * receiveBudget
	r := newRig(t)
	qps, all := r.fullGroup(bigGroup, members, 1)
	r.link.in = [][]byte{toGroup(bigGroup, nil)}
	r.round()
	rest := append(append([]*QP(nil), qps[:members-2]...), qps[members-1])
	r.engine.Do(func() {
		r.engine.setGroup(bigGroup, rest)
		r.engine.setGroup(otherGroup, []*QP{r.qp}) // concerns another group
	})
	r.run()
	for i, s := range all {
		want := uint32(1)
		if i == members-2 {
			want = 0
		}
		if n := s.cq.Available(2); n != want {
			t.Errorf("member %d has %d messages, want %d", i, n, want)
		}
	}
	r.engine.Do(func() { r.engine.setGroup(bigGroup, nil) })
	if r.run(); r.engine.more() || r.link.released != 1 {
		t.Errorf("more %v, released %d times", r.engine.more(), r.link.released)
	}
}

// A later round continues with the same packet, even if the card has sent a packet to itself meanwhile.
func TestFanOutKeepsItsPacket(t *testing.T) {
	const members = 2 * receiveBudget
	r := newRig(t)
	_, all := r.fullGroup(bigGroup, members, 1)
	r.link.in = [][]byte{toGroup(bigGroup, []byte("seven b"))}
	r.postSend(ring.Send{AH: 1}, piece(0, 3)) // to this device
	r.round()
	if !r.engine.round.arriving.pending() || r.engine.Counters().Loopback != 1 {
		t.Fatal("the fan-out is complete, or no packet was sent meanwhile")
	}
	r.run()
	for i, s := range all {
		var c ring.CQE
		if s.cq.Available(1) == 0 {
			t.Fatalf("member %d has no message", i)
		}
		if s.cq.Get(&c); c.ByteLen != wire.GRHLen+7 {
			t.Fatalf("member %d has a message of %d bytes", i, c.ByteLen)
		}
	}
}

// A later round also continues with the same packet if this card has sent it, although its frame is reused for the next
// packet.
func TestFanOutKeepsItsOwnPacket(t *testing.T) {
	const members = 2 * sendBudget
	r := newRig(t)
	_, all := r.fullGroup(bigGroup, members, 1)
	r.engine.Do(func() {
		ah := r.ah(PathAttr{State: PathOpen, DestMAC: wire.MulticastMAC(bigGroup)}, bigGroup)
		ah.Group, ah.Dest = true, bigGroup
		r.session.SetAH(9, ah)
	})
	r.send.Put(&ring.Send{Opcode: ib.WRSend, AH: 9, RemoteQPN: wire.QPNMulticast, RemoteQKey: testQKey})
	r.send.Publish()
	r.doorbell.Ring(3)
	r.round()
	if !r.engine.round.looping.pending() {
		t.Fatal("the fan-out is complete")
	}
	for i := range r.link.frame {
		r.link.frame[i] = 0xA5
	}
	r.run()
	for i, s := range all {
		var c ring.CQE
		if s.cq.Available(1) == 0 {
			t.Fatalf("member %d has no message", i)
		}
		if s.cq.Get(&c); c.ByteLen != wire.GRHLen || c.Status != ib.WCSuccess {
			t.Fatalf("member %d: %+v", i, c)
		}
	}
}
