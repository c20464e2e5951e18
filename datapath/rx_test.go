// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/wire/wiretest"
	"github.com/roced/roced/verbs/ib"
)

// TestDrops has a row for each kind of malformed or unwanted packet. Such a packet increments only its own counter, by
// one, and consumes no receive request.
func TestDrops(t *testing.T) {
	payload := []byte("a peer's message")
	change := func(do func(frame []byte)) []byte {
		frame := datagram(payload)
		do(frame)
		return wiretest.Reseal(frame)
	}
	to := func(path wire.Path) []byte { return datagramFrom(path, defaultDatagram(), payload) }
	with := func(do func(d *wire.Datagram)) []byte {
		d := defaultDatagram()
		do(&d)
		return datagramFrom(wire.Path{Source: peerGID, Dest: ownGID}, d, payload)
	}
	group := wire.GID{10: 0xff, 11: 0xff, 12: 239, 13: 1, 14: 2, 15: 3}
	rows := []struct {
		name  string
		frame []byte
		want  Drop
	}{
		{"empty", nil, DropNotRoCE},
		{"shorter than Ethernet", make([]byte, 13), DropNotRoCE},
		{"ARP", func() []byte { f := datagram(payload); f[12], f[13] = 0x08, 0x06; return f }(), DropNotRoCE},
		{"TCP", change(func(f []byte) { f[wiretest.IP+9] = 6 }), DropNotRoCE},
		{"another port", change(func(f []byte) { f[wiretest.UDP+3]++ }), DropNotRoCE},
		{"IP version 5", change(func(f []byte) { f[wiretest.IP] = 0x55 }), DropNotRoCE},
		{"IP options", change(func(f []byte) { f[wiretest.IP] = 0x46 }), DropOptions},
		{"first fragment", change(func(f []byte) { f[wiretest.IP+6] = 0x20 }), DropFragment},
		{"last fragment", change(func(f []byte) { f[wiretest.IP+7] = 0x10 }), DropFragment},
		{"cut off", datagram(payload)[:60], DropTruncated},
		{"IP length longer than the frame", change(func(f []byte) { f[wiretest.IP+2] = 0x10 }), DropTruncated},
		{"IP length shorter than UDP's", change(func(f []byte) { f[wiretest.IP+3] -= 4 }), DropLength},
		{"UDP length shorter than IP's", change(func(f []byte) { f[wiretest.UDP+5] -= 4 }), DropLength},
		{"no room for BTH and ICRC", shortened(wiretest.BTH + 12 + 3), DropLength},
		{"no room for DETH and ICRC", shortened(wiretest.DETH + 8), DropLength},
		{"bad IP checksum", func() []byte { f := datagram(payload); f[wiretest.IP+10] ^= 1; return f }(), DropIPChecksum},
		{"transport version 1", change(func(f []byte) { f[wiretest.BTH+1] |= 1 }), DropVersion},
		{"unknown opcode", change(func(f []byte) { f[wiretest.BTH] = 0x7F }), DropOpcode},
		{"pad longer than the payload", padded(shortened(wiretest.Payload + 4)), DropPad},
		{"length not in words", shortened(wiretest.Payload + 4 + 3), DropPad},
		{"bad ICRC", func() []byte { f := datagram(payload); f[len(f)-1] ^= 1; return f }(), DropICRC},
		{"bad payload", func() []byte { f := datagram(payload); f[wiretest.Payload] ^= 1; return f }(), DropICRC},
		{"without an ICRC, not from memory", to(wire.Path{Source: peerGID, Dest: ownGID, Unsealed: true}), DropICRC},
		{"flooded unicast", to(wire.Path{Source: peerGID, Dest: otherGID}), DropNotOwn},
		{"another host's MAC", to(wire.Path{Source: peerGID, Dest: ownGID, DestMAC: wire.MAC{2, 9}}), DropOtherHost},
		{"another host's MAC, group", to(wire.Path{Source: peerGID, Dest: group, DestMAC: wire.MAC{2, 9}}), DropOtherHost},
		{"from loopback", to(wire.Path{Source: gidOf("127.0.0.1"), Dest: ownGID}), DropMartianSource},
		{"from 0.0.0.0", to(wire.Path{Source: gidOf("0.0.0.0"), Dest: ownGID}), DropMartianSource},
		{"from the broadcast address", to(wire.Path{Source: gidOf("255.255.255.255"), Dest: ownGID}), DropMartianSource},
		{"from our subnet's broadcast", to(wire.Path{Source: gidOf("10.0.0.255"), Dest: ownGID}), DropMartianSource},
		{"from ::", to(wire.Path{Source: wire.GID{}, Dest: ownGID6}), DropMartianSource},
		{"from ::1", to(wire.Path{Source: gidOf("::1"), Dest: ownGID6}), DropMartianSource},
		{"from an IPv4 address in IPv6", inIPv6("::ffff:10.0.0.2", "fd00::1", payload), DropMartianSource},
		{"from our IPv4 address in IPv6", inIPv6("::ffff:10.0.0.1", "fd00::1", payload), DropMartianSource},
		{"from an IPv4 group in IPv6", inIPv6("::ffff:239.1.2.3", "fd00::1", payload), DropMartianSource},
		{"to our IPv4 address in IPv6", inIPv6("fd00::2", "::ffff:10.0.0.1", payload), DropNotOwn},
		{"to an IPv4 group in IPv6", inIPv6("fd00::2", "::ffff:239.1.2.3", payload), DropNotOwn},
		{"group of this host", toHostGroup(payload), DropNoGroup},
		{"own source reflected", to(wire.Path{Source: ownGID, Dest: ownGID}), DropOwnSource},
		{"a group as source", to(wire.Path{Source: group, Dest: ownGID}), DropGroupSource},
		{"tagged", to(wire.Path{Source: peerGID, Dest: ownGID, VLAN: 5}), DropVLAN},
		{"unknown QP", with(func(d *wire.Datagram) { d.DestQP = testQP + 1 }), DropUnknownQP},
		{"QP with the same low bits", with(func(d *wire.Datagram) { d.DestQP = testQP | 1<<16 }), DropUnknownQP},
		{"QP 0", with(func(d *wire.Datagram) { d.DestQP = 0 }), DropUnknownQP},
		{"group QP, own address", with(func(d *wire.Datagram) { d.DestQP = wire.QPNMulticast }), DropGroupQPN},
		{"group, own queue pair", to(wire.Path{Source: peerGID, Dest: group}), DropGroupQPN},
		{"group without members", toGroup(group, payload), DropNoGroup},
		{"congestion notification", notification(), DropCongestion},
		{"connected service", change(func(f []byte) { f[wiretest.BTH] = 0x04 }), DropUnsupported},
		{"P_Key of another partition", with(func(d *wire.Datagram) { d.PKey = 0x8001 }), DropPKey},
		{"P_Key 0", with(func(d *wire.Datagram) { d.PKey = 0x8000 }), DropPKey},
		{"Q_Key", with(func(d *wire.Datagram) { d.QKey++ }), DropQKey},
		{"longer than the MTU", datagram(make([]byte, 1028)), DropTooLong},
		{"one byte longer than the MTU", datagram(make([]byte, 1025)), DropTooLong},
		{"too long for the buffer", datagram(make([]byte, 700)), DropNoRoom},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			r.postRecv(1, piece(0, 40+100), piece(500, 500))
			before := append([]byte(nil), r.memory...)
			r.link.in = [][]byte{row.frame}
			r.run()
			c := r.engine.Counters()
			if c.Drops[row.want] != 1 || c.Dropped() != 1 || c.Received != 1 || c.Delivered != 0 {
				t.Errorf("counters: %v, want one of %v", named(&c), row.want)
			}
			if got := r.completions(); got != nil {
				t.Errorf("completions: %v", got)
			}
			if !bytes.Equal(before, r.memory) {
				t.Error("memory was written to")
			}
			// The receive request is still available for the next packet.
			r.link.in = [][]byte{datagram(payload)}
			r.run()
			if got := r.completions(); len(got) != 1 || got[0].ID != 1 {
				t.Errorf("a valid packet after it: %v", got)
			}
		})
	}
}

func toGroup(group wire.GID, payload []byte) []byte {
	d := defaultDatagram()
	d.DestQP = wire.QPNMulticast
	return datagramFrom(wire.Path{Source: peerGID, Dest: group}, d, payload)
}

// shortened returns a valid frame of a given length.
func shortened(length int) []byte { return wiretest.Shorten(datagram(make([]byte, 64)), length) }

func padded(f []byte) []byte {
	f[wiretest.BTH+1] |= 0x30
	return wiretest.Reseal(f)
}

func notification() []byte {
	f := shortened(wiretest.BTH + 12 + 16 + 4)
	f[wiretest.BTH] = byte(wire.OpcodeCNP)
	return wiretest.Reseal(f)
}

func named(c *Counters) map[string]uint64 {
	m := map[string]uint64{}
	for _, d := range Reasons() {
		if c.Drops[d] != 0 {
			m[d.String()] = c.Drops[d]
		}
	}
	return m
}

func TestDropsOfTheQueuePair(t *testing.T) {
	rows := []struct {
		name    string
		prepare func(r *rig)
		want    Drop
	}{
		{"no receive posted", func(*rig) {}, DropNoReceive},
		{"receive without memory", func(r *rig) { r.postRecv(1) }, DropNoRoom},
		{"INIT", func(r *rig) { r.setState(ib.QPStateInit); r.postRecv(1, piece(0, 100)) }, DropQPState},
		{"RESET", func(r *rig) { r.setState(ib.QPStateReset) }, DropQPState},
		{"ERR", func(r *rig) { r.setState(ib.QPStateErr) }, DropQPState},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			row.prepare(r)
			r.link.in = [][]byte{datagram([]byte("x"))}
			r.run()
			if c := r.engine.Counters(); c.Drops[row.want] != 1 || c.Dropped() != 1 {
				t.Errorf("counters: %v, want one of %v", named(&c), row.want)
			}
			if got := r.completions(); got != nil {
				t.Errorf("completions: %v", got)
			}
		})
	}
}

func (r *rig) setState(s ib.QPState) { r.engine.Do(func() { r.qp.SetState(s) }) }

// A receive request with memory that is not writable is consumed, completes with the error, and moves the queue pair to
// ERR.
func TestReceiveProtection(t *testing.T) {
	rows := map[string]ib.SGE{
		"unknown lkey":           {Length: 100, LKey: testKey(99)},
		"lkey of the same place": {Length: 100, LKey: testKey(1 + 8)},
		"read only":              {Length: 100, LKey: testKey(2)},
		"another PD":             {Length: 100, LKey: testKey(3)},
		"past the end":           {Addr: 4*slotLen - 99, Length: 100, LKey: testKey(1)},
		"address wraps":          {Addr: 1<<64 - 50, Length: 100, LKey: testKey(1)},
		"length wraps":           {Addr: 1, Length: 1<<32 - 1, LKey: testKey(1)},
	}
	for name, sge := range rows {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.postRecv(5, sge)
			r.postRecv(6, piece(0, 100))
			r.link.in = [][]byte{datagram([]byte("x"))}
			r.run()
			c := r.engine.Counters()
			if c.Drops[DropProtection] != 1 || c.Dropped() != 1 {
				t.Errorf("counters: %v", named(&c))
			}
			got := r.completions()
			if len(got) != 2 || got[0].ID != 5 || got[0].Status != ib.WCLocProtErr || got[1].ID != 6 || got[1].Status != ib.WCWRFlushErr {
				t.Errorf("completions: %+v", got)
			}
			if len(r.states) != 1 || r.states[0] != ib.QPStateErr || r.fatal { // a completion reports it
				t.Errorf("states: %v, fatal %v", r.states, r.fatal)
			}
		})
	}
}

// The GRH and the payload are scattered over the request's pieces, wherever they end.
func TestScatter(t *testing.T) {
	payload := bytes.Repeat([]byte("0123456789"), 10)
	for first := 0; first <= wire.GRHLen+len(payload); first++ {
		r := newRig(t)
		r.postRecv(9, piece(0, first), piece(slotLen, wire.GRHLen+len(payload)-first))
		frame := datagram(payload)
		r.link.in = [][]byte{frame}
		r.run()
		got := r.completions()
		if len(got) != 1 || got[0].Status != ib.WCSuccess || got[0].ByteLen != uint32(wire.GRHLen+len(payload)) {
			t.Fatalf("first piece of %d bytes: %+v", first, got)
		}
		buffer := append(append([]byte(nil), r.memory[:first]...), r.memory[slotLen:slotLen+wire.GRHLen+len(payload)-first]...)
		if !bytes.Equal(buffer[20:40], frame[wiretest.IP:wiretest.UDP]) || !bytes.Equal(buffer[:20], make([]byte, 20)) {
			t.Errorf("first piece of %d bytes: GRH is % x", first, buffer[:40])
		}
		if !bytes.Equal(buffer[40:], payload) {
			t.Errorf("first piece of %d bytes: payload is %q", first, buffer[40:])
		}
	}
}

func TestCompletionOfAReceive(t *testing.T) {
	r := newRig(t)
	r.postRecv(9, piece(0, slotLen))
	d := defaultDatagram()
	d.HasImm, d.Imm, d.Solicited = true, 0xDEADBEEF, true
	mac := wire.MAC{2, 3, 4, 5, 6, 7}
	r.link.in = [][]byte{datagramFrom(wire.Path{Source: peerGID, Dest: ownGID, SourceMAC: mac}, d, []byte("abc"))}
	r.run()
	want := ring.CQE{ID: 9, Opcode: ib.WCRecv, Flags: ib.WCGRH | ib.WCWithImm | ib.WCWithSMAC | ib.WCWithNetworkHdrType, ByteLen: 43, Imm: 0xDEADBEEF,
		QPN: testQP, SourceQP: peerQP, Token: 77, SMAC: mac, NetworkHeader: ib.NetworkIPv4, Port: 1}
	if got := r.completions(); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A completion contains the frame's tag: its VLAN, and its priority as the service level.
func TestCompletionOfATaggedFrame(t *testing.T) {
	r := newRig(t)
	own, peer := wire.GID{0: 0xfd, 15: 1}, wire.GID{0: 0xfd, 15: 2}
	r.engine.Do(func() {
		r.engine.tables.vlan = 0x123
		r.engine.tables.setAddresses([]wire.GID{own})
	})
	r.postRecv(9, piece(0, slotLen))
	frame := datagramFrom(wire.Path{Source: peer, Dest: own, VLAN: 0x123, SourceMAC: wire.MAC{2, 3}}, defaultDatagram(), nil)
	frame[wire.EthernetLen] |= 5 << 5
	r.link.in = [][]byte{frame}
	r.run()
	got := r.completions()
	if len(got) != 1 || got[0].Flags != ib.WCGRH|ib.WCWithSMAC|ib.WCWithNetworkHdrType|ib.WCWithVLAN {
		t.Fatalf("got %+v", got)
	}
	if c := got[0]; c.VLAN != 0x123 || c.SL != 5 || c.NetworkHeader != ib.NetworkIPv6 {
		t.Errorf("got %+v", c)
	}
}

// A payload of exactly the MTU is accepted.
func TestPayloadOfTheMTU(t *testing.T) {
	r := newRig(t)
	r.postRecv(9, piece(0, slotLen))
	r.link.in = [][]byte{datagram(make([]byte, 1024))}
	r.run()
	if got := r.completions(); len(got) != 1 || got[0].ByteLen != wire.GRHLen+1024 {
		t.Errorf("got %+v", got)
	}
}

// A long burst is received in several parts. The frames of each part are released after it.
func TestBursts(t *testing.T) {
	r := newRig(t)
	for range fakeBurst + 10 {
		r.link.in = append(r.link.in, datagram(nil))
	}
	r.run()
	c := r.engine.Counters()
	if c.Received != fakeBurst+10 || c.Drops[DropNoReceive] != fakeBurst+10 || r.link.released != 2 {
		t.Errorf("received %d, drops %v, released %d times", c.Received, named(&c), r.link.released)
	}
}

// An overrun fails the CQ and its queue pair, and both are reported.
func TestOverrun(t *testing.T) {
	r := newRig(t)
	r.engine.Do(func() { r.engine.RemoveQP(r.qp) })
	r.makeQP(r.makeCQ(2))
	r.engine.Do(func() { r.engine.AddQP(r.qp); r.qp.SetState(ib.QPStateRTS) })
	for i := range 4 {
		r.postRecv(uint64(i), piece(0, 100))
		r.link.in = append(r.link.in, datagram(nil))
	}
	r.run()
	c := r.engine.Counters()
	if c.Delivered != 2 || c.Drops[DropCQFull] != 1 || c.Drops[DropQPState] != 1 || c.Dropped() != 2 {
		t.Errorf("delivered %d, drops %v", c.Delivered, named(&c))
	}
	if got := r.completions(); len(got) != 2 || !r.cq.Failed() {
		t.Errorf("completions %v, failed %v", got, r.cq.Failed())
	}
	if len(r.states) != 1 || r.states[0] != ib.QPStateErr || !r.fatal || r.overruns != 1 {
		t.Errorf("states: %v, fatal %v, %d overruns", r.states, r.fatal, r.overruns)
	}
}

// A program can write any values into its index of a receive queue.
func TestReceiveQueueThatLies(t *testing.T) {
	r := newRig(t)
	sge := piece(0, 100)
	many := make([]ib.SGE, 2)
	for i := range many {
		many[i] = sge
	}
	r.postRecv(1, many...)
	for range 3 * rigDepth { // far more than the queue has slots
		r.recv.Put(2, many)
	}
	r.recv.Publish()
	r.link.in = [][]byte{datagram([]byte("x"))}
	r.run()
	if c := r.engine.Counters(); c.Drops[DropNoReceive] != 1 {
		t.Errorf("counters: %v", named(&c))
	}
}
