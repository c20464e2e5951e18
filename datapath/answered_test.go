// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
)

// TestAnswersAcknowledge: the response to a READ or an atomic is also its acknowledgement: no separate one is sent even
// if the peer requests it, as Soft-RoCE does for each request. A WRITE is answered by an acknowledgement.
func TestAnswersAcknowledge(t *testing.T) {
	v := newVictim(t, wire.ServiceRC)
	want := uint64(0)
	for _, row := range []struct {
		operation wire.Opcode
		length    uint32
		answers   uint64 // packets
	}{
		{wire.OpReadRequest, 600, 3},
		{wire.OpFetchAdd, 0, 1},
		{wire.OpCompareSwap, 0, 1},
		{wire.OpWriteOnly, 100, 1},
		{wire.OpReadRequest, 0, 1},
	} {
		h := wire.Transport{
			Opcode: wire.ServiceRC.Of(row.operation), DestQP: testQP, PKey: wire.PKeyDefault, AckReq: true,
			PSN: v.c.Responder.ExpectedPSN, RKey: uint32(testKey(1)), Addr: endBase, Length: row.length,
		}
		v.take(v.seal(&h, int(row.length)))
		v.engine.lease.Lock()
		for v.engine.runRound() {
		}
		v.engine.lease.Unlock()
		want += row.answers
		if sent := v.engine.Counters().Sent; sent != want {
			t.Fatalf("%v: %d packets sent, want %d", h.Opcode, sent, want)
		}
	}
}
