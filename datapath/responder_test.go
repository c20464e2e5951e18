// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"slices"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Requests of a peer, for lines.
func ask(o wire.Opcode, psn wire.PSN) wire.Transport {
	return wire.Transport{Opcode: o, PSN: psn, AckReq: true, Addr: 1 << 20, Length: 8, Imm: 7}
}

func read(psn wire.PSN, addr uint64, length uint32) wire.Transport {
	return wire.Transport{Opcode: wire.OpReadRequest, PSN: psn, Addr: addr, Length: length}
}

func atomicOf(o wire.Opcode, psn wire.PSN, addr, swapAdd, compare uint64) wire.Transport {
	return wire.Transport{Opcode: o, PSN: psn, Addr: addr, SwapAdd: swapAdd, Compare: compare}
}

// quiet returns a request without an acknowledgement request.
func quiet(h wire.Transport) wire.Transport {
	h.AckReq = false
	return h
}

// under sets the key of a request.
func under(key uint32, h wire.Transport) wire.Transport {
	h.RKey = uint32(testKey(key))
	return h
}

func denies(access ib.AccessFlags) func(*Connection) {
	return func(c *Connection) { c.Access = c.Access&^access | ib.AccessLocalWrite }
}

func limit(most uint8) func(*Connection) {
	return func(c *Connection) { c.MaxDestRDAtomic = most }
}

// TestResponder checks the responses to requests in order, to requests after a missing packet, to duplicates, and to
// requests without a receive request (IBA 9.7.4, 9.7.5, 9.9.3). Two receive requests of 264 bytes are posted.
func TestResponder(t *testing.T) {
	for name, row := range map[string]struct {
		change func(c *Connection)
		lines  []line
	}{
		"SENDs only": {denies(ib.AccessRemoteRead | ib.AccessRemoteWrite | ib.AccessRemoteAtomic), []line{
			{quiet(ask(wire.OpSendOnly, 0)), 8, DropNone, "100: receive 8B"},
			{ask(wire.OpSendOnlyImmediate, 1), 8, DropNone, "ACKNOWLEDGE 1 0x00 msn 2, 101: receive 8B imm 7"},
		}},
		"a packet is missing": {nil, []line{
			{ask(wire.OpSendOnly, 1), 8, DropOutOfSequence, "ACKNOWLEDGE 0 0x60 msn 0"},
			{ask(wire.OpSendOnly, 2), 8, DropOutOfSequence, ""}, // reported once
			{quiet(ask(wire.OpSendOnly, 0)), 8, DropNone, "100: receive 8B"},
			{ask(wire.OpSendOnly, 2), 8, DropOutOfSequence, "ACKNOWLEDGE 1 0x60 msn 1"},
			{ask(wire.OpSendOnly, 1), 8, DropNone, "ACKNOWLEDGE 1 0x00 msn 2, 101: receive 8B"},
		}},
		"a packet comes twice": {nil, []line{
			{ask(wire.OpSendOnly, 0), 8, DropNone, "ACKNOWLEDGE 0 0x01 msn 1, 100: receive 8B"},
			{ask(wire.OpSendOnly, 0), 8, DropDuplicate, "ACKNOWLEDGE 0 0x01 msn 1"},
			{quiet(ask(wire.OpWriteOnly, 1)), 8, DropNone, ""},
			{quiet(ask(wire.OpSendOnly, 0)), 8, DropDuplicate, "ACKNOWLEDGE 1 0x01 msn 2"},
		}},
		"no receive is posted": {func(c *Connection) { c.MinRNRTimer = 0x42 }, []line{
			{ask(wire.OpSendOnly, 0), 8, DropNone, "ACKNOWLEDGE 0 0x01 msn 1, 100: receive 8B"},
			{ask(wire.OpSendOnly, 1), 8, DropNone, "ACKNOWLEDGE 1 0x00 msn 2, 101: receive 8B"},
			{ask(wire.OpSendOnly, 2), 8, DropNoReceive, "ACKNOWLEDGE 2 0x22 msn 2"},
			{ask(wire.OpSendOnly, 3), 8, DropOutOfSequence, ""}, // already reported
			{ask(wire.OpSendOnly, 2), 8, DropNoReceive, "ACKNOWLEDGE 2 0x22 msn 2"},
			{ask(wire.OpWriteFirst, 2), 256, DropInvalidRequest, "ACKNOWLEDGE 2 0x61 msn 2"},
		}},
		"no receive is posted for the last packet": {nil, []line{
			{quiet(ask(wire.OpSendOnly, 0)), 8, DropNone, "100: receive 8B"},
			{quiet(ask(wire.OpWriteOnlyImmediate, 1)), 8, DropNone, "101: receive RDMA with immediate 8B imm 7"},
			{wire.Transport{Opcode: wire.OpWriteFirst, PSN: 2, Length: 264}, 256, DropNone, ""},
			{ask(wire.OpWriteLastImmediate, 3), 8, DropNoReceive, "ACKNOWLEDGE 3 0x21 msn 2"},
			{ask(wire.OpWriteLastImmediate, 3), 8, DropNoReceive, "ACKNOWLEDGE 3 0x21 msn 2"},
			{ask(wire.OpWriteLast, 3), 8, DropNone, "ACKNOWLEDGE 3 0x00 msn 3"},
			{ask(wire.OpSendFirst, 4), 256, DropNoReceive, "ACKNOWLEDGE 4 0x21 msn 3"},
			{ask(wire.OpWriteOnly, 4), 8, DropNone, "ACKNOWLEDGE 4 0x00 msn 4"},
		}},
		"messages of several packets": {nil, []line{
			{ask(wire.OpSendFirst, 0), 256, DropNone, "ACKNOWLEDGE 0 0x01 msn 0"},
			{ask(wire.OpSendLastImmediate, 1), 5, DropNone, "ACKNOWLEDGE 1 0x01 msn 1, 100: receive 261B imm 7"},
			{wire.Transport{Opcode: wire.OpWriteFirst, PSN: 2, Length: 520}, 256, DropNone, ""},
			{ask(wire.OpWriteMiddle, 3), 256, DropNone, "ACKNOWLEDGE 3 0x01 msn 1"},
			{ask(wire.OpWriteLastImmediate, 4), 8, DropNone, "ACKNOWLEDGE 4 0x00 msn 2, 101: receive RDMA with immediate 520B imm 7"},
		}},
		"a READ": {nil, []line{
			{read(0, 0, 600), 0, DropNone,
				"READ_RESPONSE_FIRST 0 0x02 msn 1 256B(0), READ_RESPONSE_MIDDLE 1 256B(32), READ_RESPONSE_LAST 2 0x02 msn 1 88B(64)"},
			{ask(wire.OpWriteOnly, 3), 8, DropNone, "ACKNOWLEDGE 3 0x02 msn 2"},
			{read(0, 0, 600), 0, DropDuplicate,
				"READ_RESPONSE_FIRST 0 0x02 msn 1 256B(0), READ_RESPONSE_MIDDLE 1 256B(32), READ_RESPONSE_LAST 2 0x02 msn 1 88B(64)"},
			{read(1, 256, 344), 0, DropDuplicate, "READ_RESPONSE_MIDDLE 1 256B(32), READ_RESPONSE_LAST 2 0x02 msn 1 88B(64)"},
			{read(2, 512, 88), 0, DropDuplicate, "READ_RESPONSE_LAST 2 0x02 msn 1 88B(64)"},
			{read(1, 256, 343), 0, DropDuplicate, ""}, // differs from the request
			{read(1, 255, 344), 0, DropDuplicate, ""},
			{under(4, read(1, 256, 344)), 0, DropDuplicate, ""},
			{atomicOf(wire.OpFetchAdd, 0, 0, 1, 0), 0, DropDuplicate, ""},
			{read(4, 0, 0), 0, DropNone, "READ_RESPONSE_ONLY 4 0x02 msn 3"},
		}},
		"more READs than are kept": {limit(2), []line{
			{read(0, 0, 8), 0, DropNone, "READ_RESPONSE_ONLY 0 0x02 msn 1 8B(0)"},
			{read(1, 8, 8), 0, DropNone, "READ_RESPONSE_ONLY 1 0x02 msn 2 8B(1)"},
			{read(2, 16, 8), 0, DropNone, "READ_RESPONSE_ONLY 2 0x02 msn 3 8B(2)"},
			{read(0, 0, 8), 0, DropDuplicate, ""},
			{read(1, 8, 8), 0, DropDuplicate, "READ_RESPONSE_ONLY 1 0x02 msn 2 8B(1)"},
			{read(2, 16, 8), 0, DropDuplicate, "READ_RESPONSE_ONLY 2 0x02 msn 3 8B(2)"},
		}},
		"no bytes need no key": {nil, []line{
			{under(50, wire.Transport{Opcode: wire.OpWriteOnly, AckReq: true}), 0, DropNone, "ACKNOWLEDGE 0 0x02 msn 1"},
			{under(50, read(1, 0, 0)), 0, DropNone, "READ_RESPONSE_ONLY 1 0x02 msn 2"},
			{under(50, wire.Transport{Opcode: wire.OpWriteOnly, PSN: 2, Length: 1}), 1, DropRemoteAccess,
				"ACKNOWLEDGE 2 0x62 msn 2, 100: flushed, 101: flushed"},
		}},
		"atomics": {nil, []line{
			{atomicOf(wire.OpFetchAdd, 0, endMemory-8, 5, 0), 0, DropNone, "ATOMIC_ACKNOWLEDGE 0 0x02 msn 1 was 0"},
			{atomicOf(wire.OpCompareSwap, 1, endMemory-8, 9, 5), 0, DropNone, "ATOMIC_ACKNOWLEDGE 1 0x02 msn 2 was 5"},
			{atomicOf(wire.OpCompareSwap, 2, endMemory-8, 1, 5), 0, DropNone, "ATOMIC_ACKNOWLEDGE 2 0x02 msn 3 was 9"},
			{atomicOf(wire.OpFetchAdd, 0, endMemory-8, 5, 0), 0, DropDuplicate, "ATOMIC_ACKNOWLEDGE 0 0x02 msn 1 was 0"},
			{atomicOf(wire.OpCompareSwap, 1, endMemory-8, 9, 5), 0, DropDuplicate, "ATOMIC_ACKNOWLEDGE 1 0x02 msn 2 was 5"},
			{atomicOf(wire.OpFetchAdd, 1, endMemory-8, 9, 5), 0, DropDuplicate, ""},
			{atomicOf(wire.OpFetchAdd, 3, endMemory-8, 0, 0), 0, DropNone, "ATOMIC_ACKNOWLEDGE 3 0x02 msn 4 was 9"},
			{ask(wire.OpWriteOnly, 4), 8, DropNone, "ACKNOWLEDGE 4 0x02 msn 5"},
		}},
	} {
		x := newExchange(t, wire.ServiceRC, row.change)
		x.postRecv(100, at(4096, 264))
		x.postRecv(101, at(8192, 264))
		x.follow(name, row.lines)
	}
}

// Errors of the receiver, such as receive requests with memory that is not writable or a full CQ, are not attributed to
// the peer's request.
func TestResponderCannotReceive(t *testing.T) {
	for name, row := range map[string]struct {
		key     uint32
		overrun bool
		drop    Drop
		heard   string
	}{
		"memory of another PD": {2, false, DropProtection, "ACKNOWLEDGE 0 0x63 msn 0, 100: local protection error"},
		"read-only memory":     {readOnly, false, DropProtection, "ACKNOWLEDGE 0 0x63 msn 0, 100: local protection error"},
		"no room in the CQ":    {1, true, DropCQFull, "ACKNOWLEDGE 0 0x63 msn 1"},
	} {
		x := newWindows(t)
		x.qp.RecvCQ.overrun = row.overrun
		x.postRecv(100, ib.SGE{Addr: endBase, Length: 8, LKey: testKey(row.key)})
		x.follow(name, []line{{ask(wire.OpSendOnly, 0), 8, row.drop, row.heard}})
	}
}

// TestResponderEnds checks the responder's NAK for a request that moves it to ERR, and the program's notification (IBA
// 9.9.3, table 60).
func TestResponderEnds(t *testing.T) {
	const none = ib.EventType(0xFF)
	for name, row := range map[string]struct {
		change func(c *Connection)
		lines  []line
		event  ib.EventType // none: a receive request's completion reports it
	}{
		"READ, not allowed": {denies(ib.AccessRemoteRead), []line{{read(0, 0, 8), 0, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"READ, none may be outstanding": {limit(0), []line{{read(0, 0, 8), 0, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"READ, too long": {nil, []line{{read(0, 0, ring.MaxMessage+1), 0, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"READ, longer than the region": {nil, []line{{read(0, 0, ring.MaxMessage), 0, DropRemoteAccess,
			"ACKNOWLEDGE 0 0x62 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPAccessErr},
		"READ, of a region that is not readable": {nil, []line{{under(3, read(0, 0, 8)), 0, DropRemoteAccess,
			"ACKNOWLEDGE 0 0x62 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPAccessErr},
		"READ, within a SEND": {nil, []line{
			{ask(wire.OpSendFirst, 0), 256, DropNone, "ACKNOWLEDGE 0 0x01 msn 0"},
			{read(1, 0, 8), 0, DropInvalidRequest, "ACKNOWLEDGE 1 0x61 msn 0, 100: remote invalid request error, 101: flushed"},
		}, none},
		"atomic, not allowed": {denies(ib.AccessRemoteAtomic), []line{{atomicOf(wire.OpFetchAdd, 0, 0, 1, 0), 0, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"atomic, none may be outstanding": {limit(0), []line{{atomicOf(wire.OpFetchAdd, 0, 0, 1, 0), 0, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"atomic, not aligned": {nil, []line{{atomicOf(wire.OpFetchAdd, 0, 4, 1, 0), 0, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"atomic, outside of the region": {nil, []line{{atomicOf(wire.OpCompareSwap, 0, endMemory, 1, 0), 0, DropRemoteAccess,
			"ACKNOWLEDGE 0 0x62 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPAccessErr},
		"atomic, within a WRITE": {nil, []line{
			{wire.Transport{Opcode: wire.OpWriteFirst, Length: 300}, 256, DropNone, ""},
			{atomicOf(wire.OpFetchAdd, 1, 0, 1, 0), 0, DropInvalidRequest, "ACKNOWLEDGE 1 0x61 msn 0, 100: flushed, 101: flushed"},
		}, ib.EventQPReqErr},
		"WRITE, not allowed": {denies(ib.AccessRemoteWrite), []line{{ask(wire.OpWriteOnly, 0), 8, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"WRITE, too long": {nil, []line{{wire.Transport{Opcode: wire.OpWriteFirst, Length: ring.MaxMessage + 1}, 256, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"WRITE, longer than the region": {nil, []line{{wire.Transport{Opcode: wire.OpWriteFirst, Length: ring.MaxMessage}, 256, DropRemoteAccess,
			"ACKNOWLEDGE 0 0x62 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPAccessErr},
		"WRITE, of another PD": {nil, []line{{under(2, ask(wire.OpWriteOnlyImmediate, 0)), 8, DropRemoteAccess,
			"ACKNOWLEDGE 0 0x62 msn 0, 100: local access error, 101: flushed"}}, none},
		"WRITE instead of a SEND": {nil, []line{
			{ask(wire.OpSendFirst, 0), 256, DropNone, "ACKNOWLEDGE 0 0x01 msn 0"},
			{ask(wire.OpWriteMiddle, 1), 256, DropInvalidRequest, "ACKNOWLEDGE 1 0x61 msn 0, 100: remote invalid request error, 101: flushed"},
		}, none},
		"SEND, a middle packet first": {nil, []line{{ask(wire.OpSendMiddle, 0), 256, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x61 msn 0, 100: flushed, 101: flushed"}}, ib.EventQPReqErr},
		"SEND, longer than the receive": {nil, []line{
			{ask(wire.OpSendFirst, 0), 256, DropNone, "ACKNOWLEDGE 0 0x01 msn 0"},
			{ask(wire.OpSendLast, 1), 9, DropNoRoom, "ACKNOWLEDGE 1 0x61 msn 0, 100: local length error, 101: flushed"},
		}, none},
		"SEND, invalidates a key without a window": {nil, []line{{ask(wire.OpSendOnlyInvalidate, 0), 8, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x01 msn 0, 100: remote invalid request error, 101: flushed"}}, none},
		"SEND, invalidates a key without a window, requests no response": {nil, []line{{quiet(ask(wire.OpSendOnlyInvalidate, 0)), 8, DropInvalidRequest,
			"ACKNOWLEDGE 0 0x01 msn 0, 100: remote invalid request error, 101: flushed"}}, none},
	} {
		x := newExchange(t, wire.ServiceRC, row.change)
		x.postRecv(100, at(4096, 264))
		x.postRecv(101, at(8192, 264))
		x.follow(name, row.lines)
		if events := append(x.events, none); events[0] != row.event || len(events) > 2 || !slices.Equal(x.states, []ib.QPState{ib.QPStateErr}) {
			t.Errorf("%s: events %v, states %v", name, x.events, x.states)
		}
		x.follow(name, []line{{ask(wire.OpSendOnly, 0), 8, DropQPState, ""}})
	}
}

// An unreliable connection drops a message if one of its packets is missing or it does not fit into the receive
// request, which is then used for the next message (IBA 9.8.2.2).
func TestUnreliableResponder(t *testing.T) {
	for name, lines := range map[string][]line{
		"in order": {
			{ask(wire.OpSendFirst, 0), 256, DropNone, ""},
		},
		"the middle is missing": {
			{ask(wire.OpSendFirst, 0), 200, DropInvalidRequest, ""},
			{ask(wire.OpSendOnly, 1), 8, DropNone, "100: receive 8B"},
			{ask(wire.OpWriteFirst, 2), 256, DropInvalidRequest, ""},
			{ask(wire.OpSendFirst, 3), 256, DropNone, ""},
			{ask(wire.OpSendLast, 5), 8, DropOutOfSequence, ""},
			{ask(wire.OpSendLast, 6), 8, DropOutOfSequence, ""},
			{ask(wire.OpSendOnlyImmediate, 7), 8, DropNone, "101: receive 8B imm 7"},
		},
		"the end is missing": {
			{ask(wire.OpSendFirst, 0), 256, DropNone, ""},
			{ask(wire.OpSendOnly, 2), 8, DropNone, "100: receive 8B"},
			{ask(wire.OpSendFirst, 3), 256, DropNone, ""},
			{ask(wire.OpWriteOnly, 4), 8, DropNone, ""},
			{ask(wire.OpSendOnly, 5), 8, DropNone, "101: receive 8B"},
		},
		"the start is missing": {
			{ask(wire.OpSendLast, 1), 8, DropOutOfSequence, ""},
			{ask(wire.OpSendMiddle, 2), 256, DropOutOfSequence, ""},
			{ask(wire.OpSendOnly, 1), 8, DropNone, "100: receive 8B"},
		},
		"longer than the receive": {
			{ask(wire.OpSendFirst, 0), 256, DropNone, ""},
			{ask(wire.OpSendMiddle, 1), 256, DropNoRoom, ""},
			{ask(wire.OpSendLast, 2), 8, DropOutOfSequence, ""},
			{ask(wire.OpSendOnly, 3), 8, DropNone, "100: receive 8B"},
		},
		"no receive": {
			{ask(wire.OpSendOnly, 0), 8, DropNone, "100: receive 8B"},
			{ask(wire.OpSendOnly, 1), 8, DropNone, "101: receive 8B"},
			{ask(wire.OpSendFirst, 2), 256, DropNoReceive, ""},
			{ask(wire.OpSendLast, 3), 8, DropOutOfSequence, ""},
		},
	} {
		x := newExchange(t, wire.ServiceUC, nil)
		x.postRecv(100, at(4096, 264))
		x.postRecv(101, at(8192, 264))
		x.follow(name, lines)
	}
}

// TestConnectionIsNotMeant delivers packets that a queue pair must not accept.
func TestConnectionIsNotMeant(t *testing.T) {
	frame := func(x *exchange, h wire.Transport) []byte {
		h.DestQP, h.PSN = testQP, x.first
		return x.frame[:x.template.SealTransport(x.frame[:], &h, 0)]
	}
	for name, row := range map[string]struct {
		h    wire.Transport
		drop Drop
	}{
		"another partition":      {wire.Transport{Opcode: wire.ServiceRC.Of(wire.OpSendOnly), PKey: 0x8001}, DropPKey},
		"another service":        {wire.Transport{Opcode: wire.ServiceUC.Of(wire.OpSendOnly), PKey: wire.PKeyDefault}, DropUnsupported},
		"congestion":             {wire.Transport{Opcode: wire.OpcodeCNP, PKey: wire.PKeyDefault}, DropCongestion},
		"congestion, elsewhere":  {wire.Transport{Opcode: wire.OpcodeCNP, PKey: 0x8001}, DropCongestion},
		"a SEND without receive": {wire.Transport{Opcode: wire.ServiceRC.Of(wire.OpSendOnly), PKey: wire.PKeyDefault}, DropNoReceive},
	} {
		x := newExchange(t, wire.ServiceRC, nil)
		x.take(frame(x, row.h))
		if c := x.engine.Counters(); c.Drops[row.drop] != 1 || c.Dropped() != 1 {
			t.Errorf("%s: %v", name, c.Drops)
		}
	}
}

// A queue pair that was reset keeps no state. Its program is notified once, by EventCommEst, when the peer has begun to
// send.
func TestConnectionBeginsAgain(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	for range 2 {
		x.events = nil
		x.engine.Do(func() {
			x.qp.SetState(ib.QPStateReset)
			x.qp.SetState(ib.QPStateInit)
			x.c.Responder.ExpectedPSN = x.first
			x.qp.SetPSN(x.first)
			x.qp.SetState(ib.QPStateRTR)
		})
		x.postRecv(100, at(4096, 264))
		x.postRecv(101, at(4096, 264))
		x.follow("in RTR", []line{
			{answer(0, ackOf), 0, DropQPState, ""},
			{ask(wire.OpSendOnly, 0), 8, DropNone, "ACKNOWLEDGE 0 0x01 msn 1, 100: receive 8B"},
			{read(1, 0, 8), 0, DropNone, "READ_RESPONSE_ONLY 1 0x01 msn 2 8B(0)"},
			{ask(wire.OpSendFirst, 2), 256, DropNone, "ACKNOWLEDGE 2 0x00 msn 2"},
			{ask(wire.OpSendOnly, 4), 256, DropOutOfSequence, "ACKNOWLEDGE 3 0x60 msn 2"},
		})
		if !slices.Equal(x.events, []ib.EventType{ib.EventCommEst}) {
			t.Errorf("events %v", x.events)
		}
		x.engine.Do(func() { x.qp.SetState(ib.QPStateRTS) })
		x.postAll(posted{o: ib.WRSend, length: 8}, posted{o: ib.WRRDMARead, length: 8})
		if sent := x.hear(); sent != "SEND_ONLY 0 8B(0) AckReq, READ_REQUEST 1 at 8 of 8" {
			t.Errorf("got %s", sent)
		}
	}
}

// A queue pair that is reset or removed sends its outstanding responses: one acknowledgement, or READ responses up to
// one turn.
func TestLastWords(t *testing.T) {
	for name, row := range map[string]struct {
		says    line
		packets int
	}{
		"nothing":         {line{Transport: quiet(ask(wire.OpWriteOnly, 0)), length: 8}, 0},
		"an ACK":          {line{Transport: ask(wire.OpWriteOnly, 0), length: 8}, 1},
		"a response":      {line{Transport: read(0, 0, 600)}, 3},
		"all of its turn": {line{Transport: read(0, 0, sendTurn*256)}, sendTurn},
		"more than that":  {line{Transport: read(0, 0, sendTurn*256+1)}, sendTurn},
	} {
		for how, end := range map[string]func(x *exchange){
			"reset":   func(x *exchange) { x.qp.SetState(ib.QPStateReset) },
			"removed": func(x *exchange) { x.engine.RemoveQP(x.qp) },
			"faulted": func(x *exchange) {
				x.session.faulted = true
				x.qp.SetState(ib.QPStateReset)
			},
		} {
			x := newExchange(t, wire.ServiceRC, nil)
			x.sayAll(row.says)
			x.engine.Do(func() { end(x) })
			want := row.packets
			if how == "faulted" {
				want = 0
			}
			arrived := x.peer.engine.link.Receive() // the victim's engine runs no further round before this
			x.peer.engine.link.Release()
			heard := x.hear()
			if sent := x.engine.Counters().Sent; int(sent) != want || arrived != want {
				t.Errorf("%s, %s: %s", name, how, heard)
			}
		}
	}
}

// A READ whose region is deregistered during the response ends there. The program is notified, unless its queue pair
// has ended before.
func TestRegionGoesWhileItIsRead(t *testing.T) {
	for _, ended := range []bool{false, true} {
		x := newExchange(t, wire.ServiceRC, nil)
		x.say(line{Transport: read(0, 0, 200*256)})
		sent := int(x.engine.Counters().Sent)
		x.engine.Do(func() {
			if ended {
				x.qp.SetState(ib.QPStateErr)
			}
			x.session.ClearKey(testKey(1))
			x.engine.round.turns.add(x.qp)
		})
		x.hear()
		c := x.engine.Counters()
		if sent == 0 || sent >= 200 || int(c.Sent) != sent+1 || c.Drops[DropRemoteAccess] != 1 {
			t.Errorf("%d packets before, then %d; %v", sent, c.Sent, c.Drops)
		}
		if told := slices.Equal(x.events, []ib.EventType{ib.EventQPAccessErr}); told == ended {
			t.Errorf("ended %v: events %v", ended, x.events)
		}
	}
}

// A pending NAK is not replaced by an ACK for a later packet of the same burst.
func TestRefusalStays(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.sayAll(line{Transport: ask(wire.OpWriteOnly, 0), length: 8}, line{Transport: ask(wire.OpWriteOnly, 2), length: 8}, line{Transport: ask(wire.OpWriteOnly, 0), length: 8})
	if heard := x.hear(); heard != "ACKNOWLEDGE 1 0x60 msn 1" {
		t.Errorf("got %s", heard)
	}
}

// A queue pair with an SRQ grants no credits: the SRQ's receive requests are not reserved for one peer.
func TestCreditsOfAnSRQ(t *testing.T) {
	if s := (&Connection{qp: &QP{SRQ: &SRQ{}}}).Credits(); s != wire.AckUncounted {
		t.Errorf("%#x", s)
	}
}
