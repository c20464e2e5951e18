// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// A request that cannot be executed fails in order, even if an earlier one was about to be retransmitted when its
// acknowledgement arrived.
func TestFailsAfterALateAnswer(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.postAll(posted{o: ib.WRSend, length: 8}, posted{o: 99}, posted{o: ib.WRSend, length: 8})
	x.hear()
	x.sayAll(line{Transport: answer(0, wire.NAKSequence)}, line{Transport: answer(0, ackOf)})
	if heard := x.hear(); heard != "1: send 8B, 2: local QP operation error, 3: flushed" {
		t.Errorf("got %q", heard)
	}
}

// Packets that are acknowledged late are not retransmitted, nor counted as in flight.
func TestLateAnswers(t *testing.T) {
	write := posted{o: ib.WRRDMAWrite, length: 8}
	for acked, row := range []string{
		"WRITE_ONLY 1 at 8 of 8 8B(1) AckReq, WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, 1: RDMA write 8B",
		"WRITE_ONLY 2 at 16 of 8 8B(2) AckReq, 1: RDMA write 8B, 2: RDMA write 8B",
		"1: RDMA write 8B, 2: RDMA write 8B, 3: RDMA write 8B",
	} {
		x := newExchange(t, wire.ServiceRC, nil)
		x.postAll(write, write, write)
		x.hear()
		x.sayAll(line{Transport: answer(0, wire.NAKSequence)}, line{Transport: answer(wire.PSN(acked), ackOf)})
		if heard := x.hear(); heard != row {
			t.Errorf("%d: got %s", acked, heard)
		}
	}
}

// One acknowledgement covers all packets that arrived together.
func TestOneAcknowledgement(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.sayAll(line{Transport: ask(wire.OpWriteOnly, 0), length: 8}, line{Transport: ask(wire.OpWriteOnly, 1), length: 8})
	if heard := x.hear(); heard != "ACKNOWLEDGE 1 0x00 msn 2" {
		t.Errorf("got %s", heard)
	}
}

// A READ's memory may be deregistered before its response arrives.
func TestNowhereToReadTo(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, nil)
	x.postAll(posted{o: ib.WRRDMARead, length: 8})
	x.hear()
	x.engine.Do(func() { x.session.ClearKey(testKey(1)) })
	x.follow("READ", []line{{response(wire.OpReadResponseOnly, 0), 8, DropProtection, "1: local protection error"}})
}

// A full link is retried: no packet is lost, and no request is flushed.
func TestConnectionWaitsForTheLink(t *testing.T) {
	for name, begin := range map[string]func(x *exchange){
		"request":  func(x *exchange) { x.postAll(posted{o: ib.WRSend, length: 8}) },
		"response": func(x *exchange) { x.sayAll(line{Transport: read(0, 0, 8)}) },
	} {
		x := newExchange(t, wire.ServiceRC, nil)
		whole, full := x.engine.link, &fakeLink{full: true}
		x.engine.link = full
		begin(x)
		x.engine.Do(func() {
			x.engine.round.budget = 10
			if moved, done := x.c.send(&x.engine.tx); moved || done || len(full.out) != 0 {
				t.Errorf("%s: moved %v, done %v, %d sent", name, moved, done, len(full.out))
			}
			full.full = false
			if moved, done := x.c.send(&x.engine.tx); !moved || !done || len(full.out) != 1 {
				t.Errorf("%s, then: moved %v, done %v, %d sent", name, moved, done, len(full.out))
			}
			x.engine.link = whole
		})
	}
}

// Only the first of several RNR NAKs for one attempt counts, as when the network duplicates one.
func TestNotReadyTwice(t *testing.T) {
	x := newExchange(t, wire.ServiceRC, retries(1))
	x.postAll(posted{o: ib.WRSend, length: 8})
	x.hear()
	x.sayAll(line{Transport: answer(0, rnr)}, line{Transport: answer(0, rnr)})
	if heard := x.hear(); heard != "SEND_ONLY 0 8B(0) AckReq" {
		t.Errorf("got %s", heard)
	}
	x.follow("then", []line{{answer(0, rnr), 0, DropNone, "1: RNR retry counter exceeded"}})
}

// A packet that exceeds its path's MTU is not sent.
func TestConnectionIsLongerThanItsPath(t *testing.T) {
	for length, drops := range map[int]uint64{512: 0, 513: 1} {
		x := newExchange(t, wire.ServiceRC, func(c *Connection) { c.MTU = wire.MTU1024 })
		x.engine.Do(func() {
			x.c.Path.set(x.engine, PathAttr{State: PathOpen, DestMAC: x.peer.mac, FromMAC: x.mac, MTU: wire.MTU512})
		})
		x.postAll(posted{o: ib.WRSend, length: length})
		x.hear()
		if c := x.engine.Counters(); c.Sent != 1 || c.Drops[DropPathMTU] != drops {
			t.Errorf("%d bytes: %d sent, %v", length, c.Sent, c.Drops)
		}
	}
}
