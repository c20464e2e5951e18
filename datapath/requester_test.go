// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// posted is a request of a program: its length, and its unusual properties.
type posted struct {
	o      ib.Opcode
	length int
	change func(s *ring.SendConnected)
}

// postAll posts requests, which are numbered from 1.
func (x *exchange) postAll(requests ...posted) {
	x.Helper()
	for i, r := range requests {
		s := to(r.o, 8*i)
		s.ID = uint64(i + 1)
		if r.change != nil {
			r.change(&s)
		}
		local := at(8*i, r.length)
		if s.Opcode >= ib.WRRDMARead && s.Opcode <= ib.WRAtomicFetchAndAdd {
			local = at(1<<20, r.length) // not the memory that others send from
		}
		x.post(s, ring.Atomic{CompareAdd: 5, Swap: 6}, local)
	}
}

// Responses of a peer, for lines.
func answer(psn wire.PSN, s wire.Syndrome) wire.Transport {
	return wire.Transport{Opcode: wire.OpAcknowledge, PSN: psn, Syndrome: s}
}

func response(o wire.Opcode, psn wire.PSN) wire.Transport {
	return wire.Transport{Opcode: o, PSN: psn, Original: 1}
}

const (
	ackOf = wire.SyndromeACK
	rnr   = wire.SyndromeRNR | 1
)

func retries(count uint8) func(c *Connection) {
	return func(c *Connection) { c.RetryCnt, c.RNRRetry = count, count }
}

// TestRequester checks the packets of a requester and its handling of responses (IBA 9.7.5.1, 9.7.6, 9.7.7).
func TestRequester(t *testing.T) {
	write, send, readOf := posted{o: ib.WRRDMAWrite, length: 8}, posted{o: ib.WRSend, length: 8}, posted{o: ib.WRRDMARead, length: 600}
	three := []posted{write, write, write}
	const allThree = "WRITE_ONLY 0 at 0 of 8 8B(0) AckReq, WRITE_ONLY 1 at 8 of 8 8B(1) AckReq, WRITE_ONLY 2 at 16 of 8 8B(2) AckReq"
	fenced := func(s *ring.SendConnected) { s.Flags |= ib.SendFence }
	unsignaled := func(s *ring.SendConnected) { s.Flags = 0 }
	invalidates := func(s *ring.SendConnected) { s.Imm = 0x77 }
	for name, row := range map[string]struct {
		change func(c *Connection)
		posts  []posted
		sent   string
		lines  []line
	}{
		"acknowledged": {nil, three, allThree, []line{
			{answer(3, ackOf), 0, DropStrayAnswer, ""},
			{answer(1, ackOf), 0, DropNone, "1: RDMA write 8B, 2: RDMA write 8B"},
			{answer(1, ackOf), 0, DropStrayAnswer, ""},
			{answer(0, wire.NAKRemoteAccess), 0, DropStrayAnswer, ""},
			{answer(2, ackOf), 0, DropNone, "3: RDMA write 8B"},
			{answer(2, ackOf), 0, DropStrayAnswer, ""},
		}},
		"acknowledged in parts": {nil, []posted{{ib.WRSend, 600, nil}, {ib.WRRDMAWriteWithImm, 300, nil}},
			"SEND_FIRST 0 256B(0), SEND_MIDDLE 1 256B(32), SEND_LAST 2 88B(64) AckReq, WRITE_FIRST 3 at 8 of 300 256B(1), WRITE_LAST_WITH_IMMEDIATE 4 44B(33) AckReq", []line{
				{answer(1, ackOf), 0, DropNone, ""},
				{answer(2, ackOf), 0, DropNone, "1: send 600B"},
				{answer(4, ackOf), 0, DropNone, "2: RDMA write 300B"},
			}},
		"unsignaled": {nil, []posted{{ib.WRSend, 8, unsignaled}, send, {ib.WRSend, 8, unsignaled}},
			"SEND_ONLY 0 8B(0) AckReq, SEND_ONLY 1 8B(1) AckReq, SEND_ONLY 2 8B(2) AckReq", []line{
				{answer(0, ackOf), 0, DropNone, ""},
				{answer(2, ackOf), 0, DropNone, "2: send 8B"},
			}},
		"solicited": {nil, []posted{{ib.WRSendWithImm, 300, func(s *ring.SendConnected) { s.Flags |= ib.SendSolicited }}},
			"SEND_FIRST 0 256B(0), SEND_LAST_WITH_IMMEDIATE 1 44B(32) AckReq solicited", []line{
				{answer(1, ackOf), 0, DropNone, "1: send 300B"},
			}},
		"invalidating": {nil, []posted{{ib.WRSendWithInv, 300, invalidates}, {ib.WRSendWithInv, 8, invalidates}},
			"SEND_FIRST 0 256B(0), SEND_LAST_WITH_INVALIDATE 1 inv 0x77 44B(32) AckReq, SEND_ONLY_WITH_INVALIDATE 2 inv 0x77 8B(1) AckReq", []line{
				{answer(2, ackOf), 0, DropNone, "1: send 300B, 2: send 8B"},
			}},
		"a packet is lost": {nil, three, allThree, []line{
			{answer(1, wire.NAKSequence), 0, DropNone,
				"WRITE_ONLY 1 at 8 of 8 8B(1) AckReq, WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, 1: RDMA write 8B"},
			{answer(1, wire.NAKSequence), 0, DropNone, ""}, // of the same loss
			{answer(1, ackOf), 0, DropNone, "2: RDMA write 8B"},
			{answer(2, wire.NAKSequence), 0, DropNone, "WRITE_ONLY 2 at 16 of 8 8B(2) AckReq"},
			{answer(2, ackOf), 0, DropNone, "3: RDMA write 8B"},
		}},
		"a part is lost": {nil, []posted{{ib.WRRDMAWrite, 600, nil}, write},
			"WRITE_FIRST 0 at 0 of 600 256B(0), WRITE_MIDDLE 1 256B(32), WRITE_LAST 2 88B(64) AckReq, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq", []line{
				{answer(1, wire.NAKSequence), 0, DropNone, "WRITE_MIDDLE 1 256B(32), WRITE_LAST 2 88B(64) AckReq, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq"},
				{answer(3, ackOf), 0, DropNone, "1: RDMA write 600B, 2: RDMA write 8B"},
			}},
		"a packet is lost, no retries": {retries(0), three, allThree, []line{
			{answer(1, wire.NAKSequence), 0, DropNone, "1: RDMA write 8B, 2: transport retry counter exceeded, 3: flushed"},
			{answer(1, ackOf), 0, DropQPState, ""},
		}},
		"retries count from the last progress": {retries(1), three, allThree, []line{
			{answer(0, wire.NAKSequence), 0, DropNone,
				allThree},
			{answer(1, wire.NAKSequence), 0, DropNone,
				"WRITE_ONLY 1 at 8 of 8 8B(1) AckReq, WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, 1: RDMA write 8B"},
			{answer(2, wire.NAKSequence), 0, DropNone, "WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, 2: RDMA write 8B"},
			{answer(2, ackOf), 0, DropNone, "3: RDMA write 8B"},
		}},
		"not ready": {retries(1), []posted{send, send, send},
			"SEND_ONLY 0 8B(0) AckReq, SEND_ONLY 1 8B(1) AckReq, SEND_ONLY 2 8B(2) AckReq", []line{
				{answer(0, rnr), 0, DropNone, "SEND_ONLY 0 8B(0) AckReq, SEND_ONLY 1 8B(1) AckReq, SEND_ONLY 2 8B(2) AckReq"},
				{answer(1, rnr), 0, DropNone, "SEND_ONLY 1 8B(1) AckReq, SEND_ONLY 2 8B(2) AckReq, 1: send 8B"},
				{answer(1, rnr), 0, DropNone, "2: RNR retry counter exceeded, 3: flushed"},
			}},
		"not ready for long": {retries(7), []posted{send, send}, "SEND_ONLY 0 8B(0) AckReq, SEND_ONLY 1 8B(1) AckReq", append(
			slices.Repeat([]line{{answer(0, rnr), 0, DropNone, "SEND_ONLY 0 8B(0) AckReq, SEND_ONLY 1 8B(1) AckReq"}}, 9),
			line{answer(1, ackOf), 0, DropNone, "1: send 8B, 2: send 8B"},
		)},
		"invalid request":          {nil, three, allThree, []line{{answer(1, wire.NAKInvalidRequest), 0, DropNone, "1: RDMA write 8B, 2: remote invalid request error, 3: flushed"}}},
		"remote access error":      {nil, three, allThree, []line{{answer(1, wire.NAKRemoteAccess), 0, DropNone, "1: RDMA write 8B, 2: remote access error, 3: flushed"}}},
		"remote operational error": {nil, three, allThree, []line{{answer(1, wire.NAKRemoteOperational), 0, DropNone, "1: RDMA write 8B, 2: remote operation error, 3: flushed"}}},
		"a NAK that is not known":  {nil, three, allThree, []line{{answer(1, wire.SyndromeNAK|4), 0, DropStrayAnswer, "1: RDMA write 8B"}}},
		"a kind that is reserved":  {nil, three, allThree, []line{{answer(1, 0x40), 0, DropStrayAnswer, ""}}},
		"READ": {nil, []posted{readOf}, "READ_REQUEST 0 at 0 of 600", []line{
			{response(wire.OpReadResponseFirst, 0), 256, DropNone, ""},
			{response(wire.OpReadResponseMiddle, 1), 256, DropNone, ""},
			{response(wire.OpReadResponseLast, 2), 88, DropNone, "1: RDMA read 600B"},
		}},
		"READ, a response is lost": {nil, []posted{readOf, write}, "READ_REQUEST 0 at 0 of 600, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq", []line{
			{response(wire.OpReadResponseFirst, 0), 256, DropNone, ""},
			{response(wire.OpReadResponseLast, 2), 88, DropOutOfSequence, "READ_REQUEST 1 at 256 of 344, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq"},
			{response(wire.OpReadResponseLast, 2), 88, DropOutOfSequence, ""},
			{response(wire.OpReadResponseFirst, 0), 256, DropStrayAnswer, ""},
			{response(wire.OpReadResponseMiddle, 1), 256, DropNone, ""},
			{response(wire.OpReadResponseLast, 2), 88, DropNone, "1: RDMA read 600B"},
			{answer(3, ackOf), 0, DropNone, "2: RDMA write 8B"},
		}},
		"READ, its response is lost": {nil, []posted{readOf, write}, "READ_REQUEST 0 at 0 of 600, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq", []line{
			{answer(3, ackOf), 0, DropNone, "READ_REQUEST 0 at 0 of 600, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq"},
			{response(wire.OpReadResponseFirst, 0), 256, DropNone, ""},
			{answer(3, ackOf), 0, DropNone, "READ_REQUEST 1 at 256 of 344, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq"},
		}},
		"READ, no retries": {retries(0), []posted{readOf, write},
			"READ_REQUEST 0 at 0 of 600, WRITE_ONLY 3 at 8 of 8 8B(1) AckReq", []line{{answer(3, ackOf), 0, DropNone, "1: transport retry counter exceeded, 2: flushed"}}},
		"READ, a short response": {nil, []posted{readOf},
			"READ_REQUEST 0 at 0 of 600", []line{{response(wire.OpReadResponseFirst, 0), 252, DropInvalidRequest, "1: bad response error"}}},
		"READ, ends too early": {nil, []posted{readOf},
			"READ_REQUEST 0 at 0 of 600", []line{{response(wire.OpReadResponseLast, 0), 256, DropInvalidRequest, "1: bad response error"}}},
		"READ, an only response": {nil, []posted{readOf},
			"READ_REQUEST 0 at 0 of 600", []line{{response(wire.OpReadResponseOnly, 0), 256, DropInvalidRequest, "1: bad response error"}}},
		"READ, an atomic's answer": {nil, []posted{readOf},
			"READ_REQUEST 0 at 0 of 600", []line{{response(wire.OpAtomicAcknowledge, 0), 0, DropInvalidRequest, "1: bad response error"}}},
		"READ, does not end": {nil, []posted{{ib.WRRDMARead, 512, nil}}, "READ_REQUEST 0 at 0 of 512", []line{
			{response(wire.OpReadResponseFirst, 0), 256, DropNone, ""},
			{response(wire.OpReadResponseMiddle, 1), 256, DropInvalidRequest, "1: bad response error"},
		}},
		"READ, of nothing": {nil, []posted{{ib.WRRDMARead, 0, nil}}, "READ_REQUEST 0 at 0 of 0", []line{
			{response(wire.OpReadResponseOnly, 0), 0, DropNone, "1: RDMA read 0B"},
		}},
		"READ, its response acknowledges earlier requests": {nil, []posted{write, send, readOf},
			"WRITE_ONLY 0 at 0 of 8 8B(0) AckReq, SEND_ONLY 1 8B(1) AckReq, READ_REQUEST 2 at 16 of 600", []line{
				{response(wire.OpReadResponseFirst, 1), 8, DropStrayAnswer, ""},
				{response(wire.OpReadResponseFirst, 2), 256, DropNone, "1: RDMA write 8B, 2: send 8B"},
			}},
		"READs, not more than may be": {func(c *Connection) { c.MaxRDAtomic = 1 }, []posted{{ib.WRRDMARead, 8, nil}, {ib.WRRDMARead, 8, nil}, write}, "READ_REQUEST 0 at 0 of 8", []line{
			{response(wire.OpReadResponseOnly, 0), 8, DropNone,
				"READ_REQUEST 1 at 8 of 8, WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, 1: RDMA read 8B"},
			{response(wire.OpReadResponseOnly, 1), 8, DropNone, "2: RDMA read 8B"},
		}},
		"a response to nothing": {nil, []posted{write},
			"WRITE_ONLY 0 at 0 of 8 8B(0) AckReq", []line{{response(wire.OpReadResponseOnly, 0), 8, DropStrayAnswer, ""}}},
		"atomics": {nil, []posted{{ib.WRAtomicFetchAndAdd, 8, nil}, {ib.WRAtomicCmpAndSwp, 8, nil}},
			"FETCH_ADD 0 at 0: 5, 0, COMPARE_SWAP 1 at 8: 6, 5", []line{
				{response(wire.OpAtomicAcknowledge, 0), 0, DropNone, "1: fetch and add 8B"},
				{response(wire.OpAtomicAcknowledge, 1), 0, DropNone, "2: compare and swap 8B"},
			}},
		"atomic, a READ's answer": {nil, []posted{{ib.WRAtomicFetchAndAdd, 8, nil}},
			"FETCH_ADD 0 at 0: 5, 0", []line{{response(wire.OpReadResponseOnly, 0), 8, DropInvalidRequest, "1: bad response error"}}},
		"atomic, its answer is lost": {nil, []posted{{ib.WRAtomicFetchAndAdd, 8, nil}, write},
			"FETCH_ADD 0 at 0: 5, 0, WRITE_ONLY 1 at 8 of 8 8B(1) AckReq", []line{
				{answer(1, ackOf), 0, DropNone, "FETCH_ADD 0 at 0: 5, 0, WRITE_ONLY 1 at 8 of 8 8B(1) AckReq"},
				{response(wire.OpAtomicAcknowledge, 0), 0, DropNone, "1: fetch and add 8B"},
				{answer(1, ackOf), 0, DropNone, "2: RDMA write 8B"},
			}},
		"fenced": {nil, []posted{{ib.WRRDMARead, 8, nil}, {ib.WRRDMAWrite, 8, fenced}, write}, "READ_REQUEST 0 at 0 of 8", []line{
			{response(wire.OpReadResponseOnly, 0), 8, DropNone,
				"WRITE_ONLY 1 at 8 of 8 8B(1) AckReq, WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, 1: RDMA read 8B"},
			{answer(2, ackOf), 0, DropNone, "2: RDMA write 8B, 3: RDMA write 8B"},
		}},
		"fenced, unsignaled": {nil, []posted{{ib.WRRDMAWrite, 8, func(s *ring.SendConnected) { s.Flags = ib.SendFence }}, write},
			"WRITE_ONLY 0 at 0 of 8 8B(0) AckReq, WRITE_ONLY 1 at 8 of 8 8B(1) AckReq", []line{
				{answer(1, ackOf), 0, DropNone, "2: RDMA write 8B"},
			}},
		"fenced READs and atomics": {nil, []posted{{ib.WRRDMARead, 8, fenced}, {ib.WRAtomicFetchAndAdd, 8, fenced}}, "READ_REQUEST 0 at 0 of 8", []line{
			{response(wire.OpReadResponseOnly, 0), 8, DropNone, "FETCH_ADD 1 at 8: 5, 0, 1: RDMA read 8B"},
			{response(wire.OpAtomicAcknowledge, 1), 0, DropNone, "2: fetch and add 8B"},
		}},
		"fenced, nothing is waited for": {nil, []posted{write, {ib.WRRDMAWrite, 8, fenced}},
			"WRITE_ONLY 0 at 0 of 8 8B(0) AckReq, WRITE_ONLY 1 at 8 of 8 8B(1) AckReq", nil},
	} {
		x := newExchange(t, wire.ServiceRC, row.change)
		x.postAll(row.posts...)
		if sent := x.hear(); sent != row.sent {
			t.Errorf("%s, sent: got\n%s\nwant\n%s", name, sent, row.sent)
		}
		x.follow(name, row.lines)
	}
}

// A queue pair with SigAll completes all requests.
func TestAllAreSignaled(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.c.Requester.SigAll = true
	x.postAll(posted{o: ib.WRSend, length: 8, change: func(s *ring.SendConnected) { s.Flags = 0 }})
	x.hear()
	x.follow("all", []line{{answer(0, ackOf), 0, DropNone, "1: send 8B"}})
}

// A program that waits for solicited completions only is woken by errors, and by solicited messages of the peer.
func TestSolicitedCompletions(t *testing.T) {
	for name, row := range map[string]struct {
		line  line
		wakes bool
	}{
		"a SEND is acknowledged": {line{Transport: answer(0, ackOf)}, false},
		"a SEND is refused":      {line{Transport: answer(0, wire.NAKRemoteAccess)}, true},
		"a SEND arrives":         {line{Transport: ask(wire.OpSendOnly, 0), length: 8}, false},
		"a solicited one":        {line{Transport: wire.Transport{Opcode: wire.OpSendOnly, Solicited: true}, length: 8}, true},
		"one that does not fit":  {line{Transport: ask(wire.OpSendOnly, 0), length: 9}, true},
	} {
		x := newExchange(t, wire.ServiceRC, nil)
		events := 0
		x.qp.SendCQ.Notify = func() { events++ }
		if row.line.length > 0 {
			x.postRecv(100, at(4096, 8))
		}
		x.postAll(posted{o: ib.WRSend, length: 8})
		x.hear()
		x.cq.Arm(true)
		x.say(row.line)
		if woken := events != 0; woken != row.wakes {
			t.Errorf("%s: %d events, %s", name, events, x.hear())
		}
	}
}

// Failed requests occupy no slots: a queue pair that has ended has no outstanding requests.
func TestFailedRequestsAreTakenBack(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	unsignaled := func(s *ring.SendConnected) { s.Flags = 0 }
	x.postAll(posted{ib.WRSend, 8, unsignaled}, posted{99, 8, unsignaled}, posted{ib.WRSend, 8, unsignaled})
	x.hear()
	x.follow("refused", []line{{answer(0, ackOf), 0, DropNone, "2: local QP operation error, 3: flushed"}})
	if n := x.send.Outstanding(x.polled); n != 0 || x.qp.State != ib.QPStateErr {
		t.Errorf("%d are outstanding; state %v", n, x.qp.State)
	}
}

// In SQD one event reports that all begun requests are finished, if the program has requested this event.
func TestDrainedIsSaidOnce(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		x := newExchange(t, wire.ServiceRC, func(c *Connection) { c.NotifyDrained = wanted })
		enter := func(state ib.QPState) { x.engine.Do(func() { x.qp.SetState(state) }) }
		var want []ib.EventType
		if wanted {
			want = []ib.EventType{ib.EventSQDrained}
		}
		x.postAll(posted{o: ib.WRSend, length: 8})
		x.hear()
		enter(ib.QPStateSQD)
		x.postAll(posted{o: ib.WRSend, length: 8})
		if x.hear(); len(x.events) != 0 {
			t.Errorf("before the answer: %v", x.events)
		}
		x.follow("in SQD", []line{{answer(0, ackOf), 0, DropNone, "1: send 8B"}})
		enter(ib.QPStateSQD) // again
		if x.hear(); !slices.Equal(x.events, want) {
			t.Errorf("drained: %v", x.events)
		}
		enter(ib.QPStateRTS)
		if heard := x.hear(); heard != "SEND_ONLY 1 8B(0) AckReq" {
			t.Errorf("in RTS again: %s", heard)
		}
		enter(ib.QPStateSQD)
		enter(ib.QPStateRTS) // before it has drained
		x.follow("in RTS", []line{{answer(1, ackOf), 0, DropNone, "1: send 8B"}})
		if x.hear(); !slices.Equal(x.events, want) {
			t.Errorf("in RTS: %v", x.events)
		}
	}
}

// If the memory of a request no longer exists when a packet must be retransmitted, the request fails after all earlier
// ones are acknowledged.
func TestMemoryIsGoneWhenItIsSentAgain(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.engine.Do(func() { x.session.SetMR(&region.MR{LKey: testKey(7), PD: testPD, Base: endBase, Memory: x.memory}) })
	for i, key := range []uint32{1, 7, 1} {
		s := to(ib.WRSend, 0)
		s.ID = uint64(i + 1)
		x.post(s, ring.Atomic{}, ib.SGE{Addr: endBase, Length: 8, LKey: testKey(key)})
	}
	x.hear()
	x.engine.Do(func() { x.session.ClearKey(testKey(7)) })
	x.follow("again", []line{
		{answer(0, wire.NAKSequence), 0, DropNone, "SEND_ONLY 0 8B(0) AckReq"},
		{answer(0, ackOf), 0, DropNone, "1: send 8B, 2: local protection error, 3: flushed"},
	})
}

// A request that fails and overruns its CQ leaves its queue pair in ERR, not in SQE.
func TestFailureOverrunsTheCQ(t *testing.T) {
	x := newExchange(t, wire.ServiceUC, nil)
	cq, g := x.qp.SendCQ, ring.CompletionGeometry(1)
	cq.Queue, _ = ring.NewCompletionProducer(ring.Alloc(g.Size()), g)
	cq.Queue.Put(new(ring.CQE))
	cq.NoteOverrun = func() {}
	x.engine.Do(func() { cq.QPs[x.qp] = struct{}{} })
	x.postAll(posted{o: 99})
	x.engine.Do(func() { x.engine.runRound() })
	if x.qp.State != ib.QPStateErr || !cq.overrun {
		t.Errorf("state %v", x.qp.State)
	}
}

// A READ or atomic response to a SEND or a WRITE is not accepted as the response to a later READ or atomic that cannot
// be executed: no memory is written.
func TestAnswerToWhatWasNotAsked(t *testing.T) {
	answers := []wire.Opcode{wire.OpReadResponseOnly, wire.OpReadResponseFirst, wire.OpReadResponseMiddle, wire.OpReadResponseLast, wire.OpAtomicAcknowledge}
	for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceXRC} {
		for _, opcode := range answers {
			for _, asked := range []ib.Opcode{ib.WRSend, ib.WRRDMAWrite} {
				for _, bad := range []ib.Opcode{ib.WRRDMARead, ib.WRAtomicFetchAndAdd} {
					x := newExchange(t, service, func(c *Connection) { c.Responder.ExpectedPSN = 1000 })
					x.postAll(posted{o: asked, length: 100}, posted{o: bad, length: 8, change: func(s *ring.SendConnected) { s.Flags |= ib.SendInline }})
					x.hear()
					before := bytes.Clone(x.memory)
					drop := x.say(line{Transport: wire.Transport{Opcode: service.Of(opcode)}, length: 100})
					if drop != DropStrayAnswer || !bytes.Equal(x.memory, before) || len(x.poll()) != 0 {
						t.Errorf("%v to %v before %v: %v", service.Of(opcode), asked, bad, drop)
					}
				}
			}
		}
	}
}
