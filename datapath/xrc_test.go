// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// forSRQ sets the SRQ number of a request.
func forSRQ(number wire.SRQN, h wire.Transport) wire.Transport {
	h.SRQN = number
	return h
}

// newTarget returns an exchange whose victim is an XRC target. SRQ 5 has two receive requests of 264 bytes, in region
// 1's PD; SRQ 6 has none, and the PD of region 2.
func newTarget(t *testing.T) (x *exchange, five, six *SRQ) {
	t.Helper()
	x = newExchange(t, wire.ServiceXRC, nil)
	five, six = x.makeTarget()
	x.engine.Do(func() { x.qp.NoteLastWQE = func() { x.events = append(x.events, ib.EventQPLastWQEReached) } })
	x.postRecv(100, at(4096, 264))
	x.postRecv(101, at(8192, 264))
	return x, five, six
}

// makeTarget converts the queue pair to an XRC target. Requests posted to it go to SRQ 5; SRQ 6 has none, and the PD of
// region 2.
func (v *victim) makeTarget() (five, six *SRQ) {
	v.Helper()
	shape := ring.RecvGeometry(4, 4)
	empty := func() *ring.RecvConsumer {
		q, err := ring.NewRecvConsumer(ring.Alloc(shape.Size()), shape)
		if err != nil {
			v.Fatal(err)
		}
		return q
	}
	five = &SRQ{Queue: v.qp.Recv, Session: v.session, PD: testPD, Number: 5, CQ: v.qp.RecvCQ, NoteLimit: func() {}}
	six = &SRQ{Queue: empty(), Session: v.session, PD: testPD + 1, Number: 6, CQ: v.qp.RecvCQ, NoteLimit: func() {}}
	v.engine.Do(func() {
		v.qp.Domain, v.qp.Recv = NewDomain(), empty()
		v.qp.Domain.AddSRQ(five)
		v.qp.Domain.AddSRQ(six)
		v.qp.NoteLastWQE = func() {}
	})
	return five, six
}

// revivesTarget is revive for a target: SRQ 5 has receive requests, and an SRQ 7 is added and removed.
func (v *victim) revivesTarget(r *rand.Rand) {
	for v.qp.Domain.srq(5).Waiting() < 8 {
		length := r.IntN(ownLen)
		v.postRecv(1, ib.SGE{Addr: endBase + uint64(r.IntN(ownLen-length+1)), Length: uint32(length), LKey: testKey(3)})
	}
	v.engine.Do(func() {
		d, seven := v.qp.Domain, *v.qp.Domain.srq(6)
		if seven.Number = 7; r.IntN(2) == 0 {
			d.AddSRQ(&seven)
		} else {
			d.RemoveSRQ(&seven)
		}
	})
}

// TestXRCTarget checks a target's responses to requests with various SRQ numbers.
func TestXRCTarget(t *testing.T) {
	remove := func(x *exchange, s *SRQ) { x.engine.Do(func() { x.qp.Domain.RemoveSRQ(s) }) }
	for name, row := range map[string]struct {
		lines  []line
		remove int // SRQ 5 is removed before this line; 0: never
		ends   []ib.EventType
	}{
		"its receives, and credits of none": {lines: []line{
			{forSRQ(5, ask(wire.OpSendOnly, 0)), 8, DropNone, "ACKNOWLEDGE 0 0x1f msn 1, 100: receive 8B"},
			{forSRQ(6, ask(wire.OpSendOnly, 1)), 8, DropNoReceive, "ACKNOWLEDGE 1 0x21 msn 1"},
			{forSRQ(5, ask(wire.OpSendOnlyImmediate, 1)), 8, DropNone, "ACKNOWLEDGE 1 0x1f msn 2, 101: receive 8B imm 7"},
			{forSRQ(5, ask(wire.OpSendOnlyImmediate, 1)), 8, DropDuplicate, "ACKNOWLEDGE 1 0x1f msn 2"},
			{forSRQ(9, ask(wire.OpSendOnlyImmediate, 1)), 8, DropDuplicate, "ACKNOWLEDGE 1 0x1f msn 2"}, // the SRQ is not checked again
		}},
		"of several packets": {lines: []line{
			{forSRQ(5, ask(wire.OpSendFirst, 0)), 256, DropNone, "ACKNOWLEDGE 0 0x1f msn 0"},
			{forSRQ(5, ask(wire.OpSendLast, 1)), 8, DropNone, "ACKNOWLEDGE 1 0x1f msn 1, 100: receive 264B"},
		}},
		"another SRQ in the middle": {lines: []line{
			{forSRQ(5, quiet(ask(wire.OpSendFirst, 0))), 256, DropNone, ""},
			{forSRQ(6, ask(wire.OpSendLast, 1)), 8, DropInvalidRequest, "ACKNOWLEDGE 1 0x61 msn 0, 100: remote invalid request error"},
		}, ends: []ib.EventType{ib.EventQPLastWQEReached}},
		"no SRQ in the middle": {lines: []line{
			{forSRQ(5, quiet(ask(wire.OpSendFirst, 0))), 256, DropNone, ""},
			{forSRQ(7, ask(wire.OpSendLast, 1)), 8, DropXRCDomain, "ACKNOWLEDGE 1 0x61 msn 0, 100: remote invalid request error"},
		}, ends: []ib.EventType{ib.EventQPLastWQEReached}},
		"destroyed in the middle": {remove: 1, lines: []line{
			{forSRQ(5, quiet(ask(wire.OpSendFirst, 0))), 256, DropNone, ""},
			{forSRQ(5, ask(wire.OpSendLast, 1)), 8, DropXRCDomain, "ACKNOWLEDGE 1 0x61 msn 0"}, // its receive request is destroyed too
		}, ends: []ib.EventType{ib.EventQPLastWQEReached}},
		"none": {lines: []line{
			{forSRQ(0, ask(wire.OpSendOnly, 0)), 8, DropXRCDomain, "ACKNOWLEDGE 0 0x61 msn 0"},
		}, ends: []ib.EventType{ib.EventQPReqErr, ib.EventQPLastWQEReached}},
		"keys of the SRQ's PD": {lines: []line{
			{forSRQ(5, quiet(ask(wire.OpWriteOnly, 0))), 8, DropNone, ""},
			{forSRQ(6, under(2, quiet(ask(wire.OpWriteOnly, 1)))), 8, DropNone, ""},
			{forSRQ(5, read(2, 0, 8)), 0, DropNone, "READ_RESPONSE_ONLY 2 0x1f msn 3 8B(0)"},
			{forSRQ(6, under(2, atomicOf(wire.OpFetchAdd, 3, 1<<20, 1, 0))), 0, DropNone, "ATOMIC_ACKNOWLEDGE 3 0x1f msn 4 was 0"},
			{forSRQ(6, ask(wire.OpWriteOnly, 4)), 8, DropRemoteAccess, "ACKNOWLEDGE 4 0x62 msn 4"},
		}, ends: []ib.EventType{ib.EventQPAccessErr, ib.EventQPLastWQEReached}},
		"a READ again": {remove: 3, lines: []line{
			{forSRQ(5, read(0, 0, 300)), 0, DropNone, "READ_RESPONSE_FIRST 0 0x1f msn 1 256B(0), READ_RESPONSE_LAST 1 0x1f msn 1 44B(32)"},
			{forSRQ(6, read(0, 0, 300)), 0, DropDuplicate, ""}, // differs from the earlier request
			{forSRQ(5, read(1, 256, 44)), 0, DropDuplicate, "READ_RESPONSE_LAST 1 0x1f msn 1 44B(32)"},
			{forSRQ(5, read(1, 256, 44)), 0, DropDuplicate, ""}, // its SRQ no longer exists, but it was answered
		}},
		"answers": {lines: []line{
			{answer(0, ackOf), 0, DropStrayAnswer, ""},
			{forSRQ(5, ask(wire.OpSendOnly, 0)), 8, DropNone, "ACKNOWLEDGE 0 0x1f msn 1, 100: receive 8B"},
		}},
	} {
		x, five, _ := newTarget(t)
		x.c.MinRNRTimer = 1
		x.events = nil
		for i, l := range row.lines {
			if row.remove > 0 && i == row.remove {
				remove(x, five)
			}
			x.follow(name, []line{l})
		}
		if !slices.Equal(x.events, row.ends) {
			t.Errorf("%s: got events %v, want %v", name, x.events, row.ends)
		}
	}
}

// An initiator accepts responses only.
func TestXRCInitiator(t *testing.T) {
	x := newExchange(t, wire.ServiceXRC, nil)
	x.postRecv(100, at(4096, 264))
	x.follow("requests", []line{
		{forSRQ(5, ask(wire.OpSendOnly, 0)), 8, DropInvalidRequest, ""},
		{forSRQ(5, read(0, 0, 8)), 0, DropInvalidRequest, ""},
	})
	if got := x.poll(); len(got) != 0 || x.qp.State != ib.QPStateRTS {
		t.Errorf("%+v in %v", got, x.qp.State)
	}
}

// The SRQs of a session whose work has faulted are not used again, as they would cause another fault.
func TestXRCAfterAFault(t *testing.T) {
	x, _, six := newTarget(t)
	x.engine.Do(func() {
		six.Session = NewSession(nil)
		six.Session.faulted = true
	})
	x.follow("after a fault", []line{{forSRQ(6, ask(wire.OpSendOnly, 0)), 8, DropXRCDomain, "ACKNOWLEDGE 0 0x61 msn 0"}})
}
