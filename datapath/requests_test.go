// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// TestRequestsAreChecked posts invalid requests, and valid ones at the limits. No packet of an invalid request is sent.
// It completes in order, with its status, and later requests are flushed (IBA 10.8.6, 11.6.2).
func TestRequestsAreChecked(t *testing.T) {
	four, eight := at(0, 4), at(0, 8)
	inline := func(o ib.Opcode, length uint32) ring.SendConnected {
		s := to(o, 0)
		s.Flags |= ib.SendInline
		s.InlineLen = length
		return s
	}
	none := func(c *Connection) { c.MaxRDAtomic = 0 }
	for name, row := range map[string]struct {
		service wire.Service
		change  func(c *Connection)
		send    ring.SendConnected
		sges    []ib.SGE
		status  ib.WCStatus
	}{
		"no such operation":                  {wire.ServiceRC, nil, to(10, 0), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"READ over UC":                       {wire.ServiceUC, nil, to(ib.WRRDMARead, 0), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"compare and swap over UC":           {wire.ServiceUC, nil, to(ib.WRAtomicCmpAndSwp, 0), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"fetch and add over UC":              {wire.ServiceUC, nil, to(ib.WRAtomicFetchAndAdd, 0), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"SEND with invalidate over UC":       {wire.ServiceUC, nil, to(ib.WRSendWithInv, 0), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"SEND over UC":                       {wire.ServiceUC, nil, to(ib.WRSend, 0), []ib.SGE{eight}, ib.WCSuccess},
		"READ, none may be outstanding":      {wire.ServiceRC, none, to(ib.WRRDMARead, 0), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"atomic, none may be":                {wire.ServiceRC, none, to(ib.WRAtomicFetchAndAdd, 0), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"SEND where no READ may be":          {wire.ServiceRC, none, to(ib.WRSend, 0), []ib.SGE{eight}, ib.WCSuccess},
		"SEND of two SGEs":                   {wire.ServiceRC, nil, to(ib.WRSend, 0), []ib.SGE{four, four}, ib.WCSuccess},
		"SEND of all SGEs":                   {wire.ServiceRC, nil, to(ib.WRSend, 0), []ib.SGE{four, four, four}, ib.WCSuccess},
		"SEND of an SGE too many":            {wire.ServiceRC, nil, to(ib.WRSend, 0), []ib.SGE{four, four, four, four}, ib.WCLocQPOpErr},
		"SEND of a byte of another PD":       {wire.ServiceRC, nil, to(ib.WRSend, 0), []ib.SGE{{Addr: endBase, Length: 1, LKey: testKey(2)}}, ib.WCLocProtErr},
		"SEND of nothing":                    {wire.ServiceRC, nil, to(ib.WRSend, 0), nil, ib.WCSuccess},
		"SEND of memory of another PD":       {wire.ServiceRC, nil, to(ib.WRSend, 0), []ib.SGE{four, {Addr: endBase, Length: 4, LKey: testKey(2)}}, ib.WCLocProtErr},
		"SEND of no bytes of no memory":      {wire.ServiceRC, nil, to(ib.WRSend, 0), []ib.SGE{four, {LKey: testKey(50)}}, ib.WCSuccess},
		"READ into memory that is not":       {wire.ServiceRC, nil, to(ib.WRRDMARead, 0), []ib.SGE{{Addr: endBase, Length: 4, LKey: testKey(6)}}, ib.WCLocProtErr},
		"SEND of memory that is read":        {wire.ServiceRC, nil, to(ib.WRSend, 0), []ib.SGE{{Addr: endBase, Length: 4, LKey: testKey(6)}}, ib.WCSuccess},
		"READ inline":                        {wire.ServiceRC, nil, inline(ib.WRRDMARead, 8), nil, ib.WCLocQPOpErr},
		"READ of two SGEs":                   {wire.ServiceRC, nil, to(ib.WRRDMARead, 0), []ib.SGE{four, four}, ib.WCSuccess},
		"atomic inline":                      {wire.ServiceRC, nil, inline(ib.WRAtomicFetchAndAdd, 8), []ib.SGE{eight}, ib.WCLocQPOpErr},
		"atomic without memory":              {wire.ServiceRC, nil, to(ib.WRAtomicFetchAndAdd, 0), nil, ib.WCLocQPOpErr},
		"atomic of two SGEs":                 {wire.ServiceRC, nil, to(ib.WRAtomicCmpAndSwp, 0), []ib.SGE{four, four}, ib.WCLocQPOpErr},
		"atomic of four bytes":               {wire.ServiceRC, nil, to(ib.WRAtomicFetchAndAdd, 0), []ib.SGE{four}, ib.WCLocLenErr},
		"atomic of nine bytes":               {wire.ServiceRC, nil, to(ib.WRAtomicCmpAndSwp, 0), []ib.SGE{at(0, 9)}, ib.WCLocLenErr},
		"WRITE inline":                       {wire.ServiceRC, nil, inline(ib.WRRDMAWrite, 8), nil, ib.WCSuccess},
		"SEND inline, as much as fits":       {wire.ServiceRC, nil, inline(ib.WRSend, 64), nil, ib.WCSuccess},
		"SEND inline, a byte too much":       {wire.ServiceRC, nil, inline(ib.WRSend, 65), nil, ib.WCLocLenErr},
		"SEND inline, more than is there":    {wire.ServiceRC, nil, inline(ib.WRSend, 1<<31), nil, ib.WCLocLenErr},
		"invalidates a key without a window": {wire.ServiceRC, nil, to(ib.WRLocalInv, 0), nil, ib.WCMWBindErr},
		"binds a key without a window":       {wire.ServiceUC, nil, to(ib.WRBindMW, 0), nil, ib.WCMWBindErr},
	} {
		x := newExchange(t, row.service, row.change)
		x.engine.Do(func() {
			x.session.SetMR(&region.MR{LKey: testKey(6), PD: testPD, Base: endBase, Memory: x.memory})
			x.c.Requester.MaxInline, x.c.Requester.MaxSendSGE = 64, 3
		})
		write, behind := posted{o: ib.WRRDMAWrite, length: 8}, to(ib.WRSend, 0)
		x.postAll(write)
		row.send.ID, behind.ID = 2, 3
		x.post(row.send, ring.Atomic{}, row.sges...)
		x.post(behind, ring.Atomic{}, eight)
		heard := x.hear()
		if row.status == ib.WCSuccess {
			bytes := fmt.Sprintf(" %dB(0)", row.send.InlineLen)
			if sent := x.engine.Counters().Sent; sent != 3 || row.send.Flags&ib.SendInline != 0 && !strings.Contains(heard, bytes) {
				t.Errorf("%s: %s", name, heard)
			}
			continue
		}
		state := ib.QPStateSQE
		if row.service == wire.ServiceRC {
			state = ib.QPStateErr
			if heard != "WRITE_ONLY 0 at 0 of 8 8B(0) AckReq" {
				t.Errorf("%s, before earlier requests have completed: %s", name, heard)
			}
			x.say(line{Transport: answer(0, ackOf)})
			heard += ", " + x.hear()
		}
		want := fmt.Sprintf(", 1: RDMA write 8B, 2: %v, 3: flushed", row.status)
		if sent := x.engine.Counters().Sent; sent != 1 || !strings.HasSuffix(heard, want) || x.qp.State != state || !slices.Equal(x.states, []ib.QPState{state}) {
			t.Errorf("%s: %s; states %v", name, heard, x.states)
		}
		if state == ib.QPStateErr {
			continue
		}
		x.engine.Do(func() { x.qp.SetState(ib.QPStateRTS) })
		x.post(behind, ring.Atomic{}, eight)
		if heard := x.hear(); heard != "SEND_ONLY 1 8B(0), 3: send 8B" {
			t.Errorf("%s, in RTS again: %s", name, heard)
		}
	}
}

// A message is gathered from all its pieces, and a READ is scattered to them, even if pieces and packets have different
// boundaries. Changes of the data after the check of the request take effect.
func TestPieces(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.fill(rand.New(rand.NewPCG(1, 1)), 0, 1<<16)
	pieces := []ib.SGE{at(5000, 100), at(0, 0), at(9000, 300), at(1000, 200)}
	var want, got []byte
	for _, p := range pieces {
		want = append(want, x.memory[p.Addr-endBase:][:p.Length]...)
	}
	x.post(to(ib.WRSend, 0), ring.Atomic{}, pieces...)
	x.rest()
	for range 3 {
		var p wire.Packet
		if one := <-x.tap.Packets(); wire.Parse(one.Frame, &p) == wire.FaultNone {
			got = append(got, p.Payload()...)
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("the sent bytes differ")
	}
	x.say(line{Transport: answer(2, ackOf)})

	x.post(to(ib.WRRDMARead, 0), ring.Atomic{}, pieces...)
	x.rest()
	got = nil
	for i, o := range []wire.Opcode{wire.OpReadResponseFirst, wire.OpReadResponseMiddle, wire.OpReadResponseLast} {
		h := wire.Transport{Opcode: wire.ServiceRC.Of(o), DestQP: testQP, PKey: wire.PKeyDefault, PSN: x.first.Plus(3 + uint32(i))}
		payload := x.frame[x.template.PayloadOffsetOf(h.Opcode):][:min(256, 600-i*256)]
		for j := range payload {
			payload[j] = byte(7*i + j)
		}
		got = append(got, payload...)
		x.take(x.seal(&h, len(payload)))
	}
	for _, p := range pieces {
		if part := x.memory[p.Addr-endBase:][:p.Length]; !bytes.Equal(part, got[:p.Length]) {
			t.Errorf("the %d bytes at %#x", p.Length, p.Addr)
		}
		got = got[p.Length:]
	}

	s := to(ib.WRSend, 0)
	s.SGECount, s.ID = 1, 9
	data := x.send.PutConnected(&s)
	ring.PutSGE(data, at(0, 600))
	x.ring()
	x.hear()
	ring.PutSGE(data, at(0, 300))
	x.follow("shorter", []line{{answer(6, wire.NAKSequence), 0, DropNone, "SEND_FIRST 6 256B(" + fmt.Sprint(x.memory[0]) + "), 9: local protection error"}})
}

// The previous contents of a slot are not part of the request.
func TestSlotIsUsedAgain(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	s := to(ib.WRSend, 0)
	s.SGECount = 1
	data := x.send.PutConnected(&s)
	for i := range data {
		data[i] = 0xA5
	}
	ring.PutSGE(data, at(0, 8))
	x.ring()
	if heard := x.hear(); heard != "SEND_ONLY 0 8B(0) AckReq" {
		t.Errorf("got %s", heard)
	}
}

// Inline data is read from the slot.
func TestInlineOverAConnection(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	s := to(ib.WRSend, 0)
	s.Flags, s.InlineLen = ib.SendInline, 5
	copy(x.send.PutConnected(&s), "\x07\x08\x09")
	x.ring()
	if heard := x.hear(); heard != "SEND_ONLY 0 5B(7) AckReq" {
		t.Errorf("got %s", heard)
	}
}
