// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// exchange is an end whose peer is simulated by the test: the test specifies the incoming packets one by one, and reads
// the outgoing ones. Tests do not depend on time: packets are retransmitted only if the peer requests it.
type exchange struct {
	*victim
	tap   *Tap
	first wire.PSN // of the requests of both sides
	peer  *end
}

func newExchange(t *testing.T, service wire.Service, change func(c *Connection)) *exchange {
	t.Helper()
	p := connect(t, service, 1, func(c *Connection) {
		c.MTU, c.Timeout = wire.MTU256, 0
		if change != nil {
			change(c)
		}
	})
	x := &exchange{tap: NewTap(TapFilter{}), first: p.a.c.Responder.ExpectedPSN, peer: p.b}
	x.victim = &victim{end: p.a, template: wire.NewTemplate(wire.Path{Source: p.b.gid, Dest: p.a.gid, DestMAC: p.a.mac, SourceMAC: p.b.mac})}
	for i := range 1 << 11 {
		x.memory[i] = byte(i >> 3)
	}
	x.engine.Do(func() { x.engine.taps.add(x.tap) })
	return x
}

// line is a packet of the peer and its expected effect. Its PSN is relative to the first one, its address to the start
// of the region; the default key is that of the region.
type line struct {
	wire.Transport
	length int // bytes of payload
	drop   Drop
	heard  string // expected outgoing packets and completions; see hear
}

// say delivers a packet to the end, and returns its drop reason.
func (x *exchange) say(l line) Drop {
	x.Helper()
	before := x.engine.counters.Drops
	x.take(x.packet(l))
	for _, reason := range Reasons() {
		if x.engine.counters.Drops[reason] != before[reason] {
			return reason
		}
	}
	return DropNone
}

// sayAll delivers packets in one burst: the end responds after all of them.
func (x *exchange) sayAll(lines ...line) {
	x.engine.lease.Lock()
	for _, l := range lines {
		x.engine.rx.receive(x.packet(l))
	}
	x.engine.completions.publish()
	x.engine.lease.Unlock()
}

func (x *exchange) packet(l line) []byte {
	h := l.Transport
	h.Opcode, h.DestQP, h.PKey, h.PSN = x.c.Service.Of(h.Opcode), testQP, wire.PKeyDefault, x.first.Plus(uint32(h.PSN))
	if h.Addr += endBase; h.RKey == 0 {
		h.RKey = uint32(testKey(1))
	}
	return x.seal(&h, l.length)
}

// rest runs the engine until it has no more work. The peer's card accepts all packets.
func (x *exchange) rest() {
	x.Helper()
	x.engine.lease.Lock()
	defer x.engine.lease.Unlock()
	for moved := true; moved || !x.engine.timers.empty() && !x.c.Requester.InFlight(); moved = x.engine.runRound() { // an RNR wait is short
		for x.peer.engine.link.Receive() > 0 {
			x.peer.engine.link.Release()
		}
	}
	if x.engine.more() || x.fatal {
		x.Errorf("the engine is not at rest, or the end was fatal: %v", x.fatal)
	}
}

// hear runs the engine until it has no more work, and returns the outgoing packets and the completions as text.
func (x *exchange) hear() string {
	x.Helper()
	x.rest()
	var all []string
	for len(x.tap.Packets()) > 0 {
		if one := <-x.tap.Packets(); one.Out {
			all = append(all, x.describe(one.Frame))
		}
	}
	for _, c := range x.poll() {
		if c.Status == ib.WCSuccess && c.Opcode.IsRecv() && (c.Port != 1 || c.SourceQP != testQP || c.Flags&^(ib.WCWithImm|ib.WCWithInv) != 0) {
			x.Errorf("%+v", c)
		}
		all = append(all, describeCompletion(&c))
	}
	return strings.Join(all, ", ")
}

func describeCompletion(c *ring.CQE) string {
	switch c.Status {
	case ib.WCSuccess:
	case ib.WCWRFlushErr:
		return fmt.Sprintf("%d: flushed", c.ID)
	default:
		return fmt.Sprintf("%d: %v", c.ID, c.Status)
	}
	text := fmt.Sprintf("%d: %v %dB", c.ID, c.Opcode, c.ByteLen)
	if c.Flags&ib.WCWithImm != 0 {
		text += fmt.Sprintf(" imm %d", c.Imm)
	}
	if c.Flags&ib.WCWithInv != 0 {
		text += fmt.Sprintf(" inv %#x", c.Imm)
	}
	return text
}

// describe returns the contents of an outgoing packet as text. The payload is described by its length and its first
// byte, which is an eighth of its offset in memory.
func (x *exchange) describe(frame []byte) string {
	var p wire.Packet
	if fault := wire.Parse(frame, &p); fault != wire.FaultNone || !p.CheckICRC() {
		x.Fatalf("malformed outgoing packet: %v", fault)
	}
	if !bytes.Equal(frame[:12], append(x.peer.mac[:], x.mac[:]...)) {
		x.Errorf("Ethernet header % x", frame[:12])
	}
	bth := p.BTH()
	_, name, _ := strings.Cut(bth.Opcode().String(), "_") // the service
	name = strings.TrimPrefix(name, "RDMA_")
	text := fmt.Sprintf("%s %d", name, bth.PSN().Ahead(x.first))
	if p.Has(wire.HeaderRETH) {
		text += fmt.Sprintf(" at %d of %d", p.RETH().Addr()-endBase, p.RETH().Length())
	}
	if p.Has(wire.HeaderAtomicETH) {
		h := p.AtomicETH()
		text += fmt.Sprintf(" at %d: %d, %d", h.Addr()-endBase, h.SwapAdd(), h.Compare())
	}
	if p.Has(wire.HeaderAETH) {
		text += fmt.Sprintf(" %#02x msn %d", uint8(p.AETH().Syndrome()), p.AETH().MSN())
	}
	if p.Has(wire.HeaderAtomicAckETH) {
		text += fmt.Sprintf(" was %d", p.Original())
	}
	if p.Has(wire.HeaderIETH) {
		text += fmt.Sprintf(" inv %#x", p.InvalidateRKey())
	}
	if n := len(p.Payload()); n > 0 {
		text += fmt.Sprintf(" %dB(%d)", n, p.Payload()[0])
	}
	if bth.AckReq() {
		text += " AckReq"
	}
	if bth.Solicited() {
		text += " solicited"
	}
	return text
}

// follow delivers the packets of lines and checks their effects.
func (x *exchange) follow(name string, lines []line) {
	x.Helper()
	for i, l := range lines {
		if drop := x.say(l); drop != l.drop {
			x.Errorf("%s, line %d: dropped: %v", name, i, drop)
		}
		if heard := x.hear(); heard != l.heard {
			x.Errorf("%s, line %d: got\n%s\nwant\n%s", name, i, heard, l.heard)
		}
	}
}
