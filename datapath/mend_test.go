// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// keeper returns an exchange of a card that keeps up to room packets that arrive before a missing one, and retransmits
// only missing packets.
func keeper(t *testing.T, room int) *exchange {
	t.Helper()
	x := newExchange(t, wire.ServiceRC, nil)
	x.engine.Do(func() {
		x.modernise()
		x.engine.ahead = conn.NewAhead(room)
		x.c.Responder.Ahead = x.engine.ahead
	})
	return x
}

// Packets that arrive before a missing one are executed after it, in order, and acknowledged with it.
func TestAheadIsKept(t *testing.T) {
	x := keeper(t, 8)
	for i := range 6 {
		x.postRecv(uint64(100+i), at(4096+512*i, 264))
	}
	x.follow("a gap", []line{
		{ask(wire.OpSendOnly, 0), 8, DropNone, "ACKNOWLEDGE 0 0x04 msn 1, 100: receive 8B"},
		{ask(wire.OpSendOnly, 2), 16, DropNone, "ACKNOWLEDGE 1 0x60 msn 1"},
		{ask(wire.OpSendOnly, 3), 24, DropNone, ""},
		{ask(wire.OpSendOnly, 3), 24, DropOutOfSequence, ""},
		{ask(wire.OpSendOnly, 1), 8, DropNone, "ACKNOWLEDGE 3 0x02 msn 4, 101: receive 8B, 102: receive 16B, 103: receive 24B"},
		{ask(wire.OpSendOnly, 2), 16, DropDuplicate, "ACKNOWLEDGE 3 0x02 msn 4"},
	})
	x = keeper(t, 8)
	x.follow("two gaps, a READ, and packets far ahead", []line{
		{ask(wire.OpWriteOnly, 1), 8, DropNone, "ACKNOWLEDGE 0 0x60 msn 0"},
		{read(3, 0, 8), 0, DropNone, ""},
		{ask(wire.OpWriteOnly, 600), 8, DropOutOfSequence, ""},
		{ask(wire.OpWriteOnly, 0), 8, DropNone, "ACKNOWLEDGE 2 0x60 msn 2"},
		{ask(wire.OpWriteOnly, 2), 8, DropNone, "READ_RESPONSE_ONLY 3 0x00 msn 4 8B(0), ACKNOWLEDGE 3 0x00 msn 4"},
		{ask(wire.OpWriteOnly, 5), 8, DropNone, "ACKNOWLEDGE 4 0x60 msn 4"},
	})
	x = keeper(t, 1)
	x.follow("no room", []line{
		{ask(wire.OpWriteOnly, 1), 8, DropNone, "ACKNOWLEDGE 0 0x60 msn 0"},
		{ask(wire.OpWriteOnly, 2), 8, DropOutOfSequence, ""},
		{ask(wire.OpWriteOnly, 0), 8, DropNone, "ACKNOWLEDGE 1 0x00 msn 2"},
		{ask(wire.OpWriteOnly, 3), 8, DropNone, "ACKNOWLEDGE 2 0x60 msn 2"},
	})
	x.engine.Do(func() { x.qp.SetState(ib.QPStateErr) }) // discards the kept packets
	if kept := x.c.Responder.Keeps(); kept != 0 {
		t.Errorf("%d packets are kept, want 0", kept)
	}
}

// Only the packet that the peer misses is retransmitted. The acknowledgement then shows whether the peer has kept the
// later ones.
func TestOneIsSentAgain(t *testing.T) {
	write := posted{o: ib.WRRDMAWrite, length: 8}
	x := keeper(t, 8)
	x.postAll(write, write, write, write)
	x.hear()
	x.follow("a peer that keeps", []line{
		{answer(1, wire.NAKSequence), 0, DropNone, "WRITE_ONLY 1 at 8 of 8 8B(1) AckReq, 1: RDMA write 8B"},
		{answer(3, ackOf), 0, DropNone, "2: RDMA write 8B, 3: RDMA write 8B, 4: RDMA write 8B"},
	})
	x = keeper(t, 8)
	x.postAll(write, write, write, write)
	x.hear()
	x.follow("a peer that keeps nothing", []line{
		{answer(0, wire.NAKSequence), 0, DropNone, "WRITE_ONLY 0 at 0 of 8 8B(0) AckReq"},
		{answer(0, ackOf), 0, DropNone, "WRITE_ONLY 1 at 8 of 8 8B(1) AckReq, WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, WRITE_ONLY 3 at 24 of 8 8B(3) AckReq, 1: RDMA write 8B"},
		{answer(1, ackOf), 0, DropNone, "2: RDMA write 8B"},
		{answer(2, wire.NAKSequence), 0, DropNone, "WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, WRITE_ONLY 3 at 24 of 8 8B(3) AckReq"},
	})
}

// A READ is requested again from the missing packet on, not from its beginning.
func TestReadIsAskedAgainFromTheGap(t *testing.T) {
	x := keeper(t, 8)
	x.postAll(posted{o: ib.WRRDMARead, length: 4 * 256})
	x.hear()
	x.follow("a gap", []line{
		{response(wire.OpReadResponseFirst, 0), 256, DropNone, ""},
		{response(wire.OpReadResponseMiddle, 2), 256, DropOutOfSequence, "READ_REQUEST 1 at 256 of 768"},
	})
}
