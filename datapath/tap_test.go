// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The result of a packet is described by the names of the counters.
func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		packet Tapped
		want   string
	}{
		{Tapped{Dest: 0x12, Delivered: 1}, "delivered to QP 0x000012"},
		{Tapped{Dest: wire.QPNMulticast, Delivered: 1}, "delivered to 1 queue pair of the group"},
		{Tapped{Dest: wire.QPNMulticast, Delivered: 3, Drops: []Drop{DropQKey, DropNoReceive, DropNoReceive}}, "delivered to 3 queue pairs of the group; dropped: qkey; dropped: no_receive (2 queue pairs)"},
		{Tapped{Drops: []Drop{DropICRC}}, "dropped: icrc"},
		{Tapped{Out: true}, "sent"},
		{Tapped{Out: true, Dest: 5, Drops: []Drop{DropUnreachable}}, "dropped: unreachable"},
		{Tapped{Out: true, Dest: wire.QPNMulticast, Drops: []Drop{DropSelfLoopback}}, "sent; dropped: self_loopback"},
		{Tapped{Out: true, Waits: true}, "waiting: for the neighbour's address, or for delivery to more members of the group"},
	} {
		if got := row.packet.Verdict(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// TestTapShowsICRCs: packets on an in-memory network have no ICRC, but captures contain the correct one, at both ends.
func TestTapShowsICRCs(t *testing.T) {
	p := connect(t, wire.ServiceRC, 0, nil)
	tap := NewTap(TapFilter{})
	for _, e := range []*end{p.a, p.b} {
		e.engine.Do(func() { e.engine.taps.add(tap) })
	}
	p.b.postRecv(1, at(recvArea, 100))
	p.a.post(ring.SendConnected{Opcode: ib.WRSend, Flags: ib.SendSignaled}, ring.Atomic{}, at(sourceArea, 100))
	p.await(1, 1)
	if len(tap.Packets()) < 4 { // a message and its acknowledgement, at both ends
		t.Fatalf("%d packets", len(tap.Packets()))
	}
	for range len(tap.Packets()) {
		seen := <-tap.Packets()
		var packet wire.Packet
		if fault := wire.Parse(seen.Frame, &packet); fault != wire.FaultNone || !packet.CheckICRC() {
			t.Errorf("out %v: %v, or a wrong ICRC", seen.Out, fault)
		}
	}
}

// TestTapShortens: during a capture at one end, neither end sends long packets.
func TestTapShortens(t *testing.T) {
	p := connect(t, wire.ServiceRC, 0, func(c *Connection) { c.Timeout = 0 }) // no retransmissions
	p.takesLong()
	packets := func() int {
		before := p.a.port.frames
		p.a.post(to(ib.WRRDMAWrite, recvArea), ring.Atomic{}, at(sourceArea, 10<<10))
		p.await(1, 0)
		return p.a.port.frames - before
	}
	tap := NewTap(TapFilter{})
	if n := packets(); n != 1 {
		t.Errorf("got %d packets, want a long one", n)
	}
	p.b.engine.Do(func() { p.b.engine.taps.add(tap) })
	if n := packets(); n != 10 {
		t.Errorf("got %d packets during a capture, want 10", n)
	}
	p.b.engine.Do(func() { p.b.engine.taps.remove(tap) })
	if n := packets(); n != 1 {
		t.Errorf("got %d packets after the capture, want a long one", n)
	}
}

// TestTapsOfAClosedEngine: after an engine with taps is closed, the network carries long packets again. Removing the
// taps later has no effect on that.
func TestTapsOfAClosedEngine(t *testing.T) {
	network := link.NewNetwork(1)
	a, b := newEnd(t, network, 1), newEnd(t, network, 2)
	a.takesLong()
	b.takesLong()
	one, two := NewTap(TapFilter{}), NewTap(TapFilter{})
	b.engine.Do(func() {
		b.engine.taps.add(one)
		b.engine.taps.add(two)
	})
	if err := b.engine.Close(); err != nil {
		t.Fatal(err)
	}
	b.engine.Do(func() { b.engine.taps.remove(one) })
	if a.port.Longest() == 0 {
		t.Error("packets stay short")
	}
}

// A long packet that was in flight when a tap was attached is captured as a single packet.
func TestTapOfALongPacket(t *testing.T) {
	p := connect(t, wire.ServiceRC, 0, nil)
	p.takesLong()
	p.a.post(to(ib.WRRDMAWrite, recvArea), ring.Atomic{}, at(sourceArea, 10<<10))
	p.a.engine.Round()
	tap := NewTap(TapFilter{})
	p.b.engine.Do(func() { p.b.engine.taps.add(tap) })
	p.await(1, 0)
	if seen := <-tap.Packets(); seen.Delivered != 1 || seen.Length < 10<<10 {
		t.Errorf("%d bytes, delivered %d times", seen.Length, seen.Delivered)
	}
}

// If the reader does not read, packets beyond the tap's buffer are lost and counted. Packets in the buffer are kept,
// truncated to Snap bytes.
func TestTapIsBounded(t *testing.T) {
	tap := NewTap(TapFilter{Snap: 3})
	for range tapRoom + 7 {
		tap.give(Tapped{Frame: make([]byte, 5), Length: 5})
	}
	if n, lost := len(tap.Packets()), tap.Lost(); n != tapRoom || lost != 7 || tap.Lost() != 0 {
		t.Errorf("got %d packets, %d lost", n, lost)
	}
	if p := <-tap.Packets(); len(p.Frame) != 3 || p.Length != 5 {
		t.Errorf("%+v", p)
	}
}
