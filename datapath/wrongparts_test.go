// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// packetOf is a packet of a message: its opcode, and the length of its payload in bytes.
type packetOf struct {
	operation wire.Opcode
	length    int
}

// takeAll delivers the packets of a message to the victim, in order. addr and length are the fields of the RETH.
func (v *victim) takeAll(addr uint64, length uint32, packets ...packetOf) {
	for _, p := range packets {
		v.take(v.seal(&wire.Transport{
			Opcode: v.c.Service.Of(p.operation), DestQP: testQP, PKey: wire.PKeyDefault, PSN: v.c.Responder.ExpectedPSN,
			RKey: uint32(testKey(1)), Addr: addr, Length: length,
		}, p.length))
	}
}

// Messages whose packets do not match each other, or the first packet's header (IBA 9.7.4.1.4, 9.7.4.1.6, 9.8.2.2). A
// reliable connection ends; an unreliable one loses the message. No request completes.
func TestPartsThatDoNotFit(t *testing.T) {
	const mtu = 256
	inside := uint64(endBase + 1024)
	for name, row := range map[string]struct {
		addr    uint64
		length  uint32
		packets []packetOf
		reason  Drop
		written int // bytes from addr on
	}{
		"SEND, an empty last packet":    {0, 0, []packetOf{{wire.OpSendFirst, mtu}, {wire.OpSendLast, 0}}, DropInvalidRequest, 0},
		"SEND, a short first packet":    {0, 0, []packetOf{{wire.OpSendFirst, mtu - 4}}, DropInvalidRequest, 0},
		"SEND, a short middle packet":   {0, 0, []packetOf{{wire.OpSendFirst, mtu}, {wire.OpSendMiddle, mtu - 4}}, DropInvalidRequest, 0},
		"SEND, a long only packet":      {0, 0, []packetOf{{wire.OpSendOnly, mtu + 4}}, DropInvalidRequest, 0},
		"WRITE, an empty last packet":   {inside, mtu, []packetOf{{wire.OpWriteFirst, mtu}, {wire.OpWriteLast, 0}}, DropInvalidRequest, mtu},
		"WRITE, a short last packet":    {inside, 600, []packetOf{{wire.OpWriteFirst, mtu}, {wire.OpWriteMiddle, mtu}, {wire.OpWriteLast, 84}}, DropInvalidRequest, 2 * mtu},
		"WRITE, a long last packet":     {inside, 600, []packetOf{{wire.OpWriteFirst, mtu}, {wire.OpWriteMiddle, mtu}, {wire.OpWriteLast, 92}}, DropInvalidRequest, 2 * mtu},
		"WRITE, a packet too many":      {inside, 512, []packetOf{{wire.OpWriteFirst, mtu}, {wire.OpWriteMiddle, mtu}, {wire.OpWriteMiddle, mtu}}, DropInvalidRequest, 2 * mtu},
		"WRITE, a packet too few":       {inside, 1024, []packetOf{{wire.OpWriteFirst, mtu}, {wire.OpWriteLast, mtu}}, DropInvalidRequest, mtu},
		"WRITE, short of its length":    {inside, 100, []packetOf{{wire.OpWriteOnly, 96}}, DropInvalidRequest, 0},
		"WRITE, beyond its length":      {inside, 100, []packetOf{{wire.OpWriteOnly, 104}}, DropInvalidRequest, 0},
		"WRITE, its end is elsewhere":   {endBase + openLen - mtu, 600, []packetOf{{wire.OpWriteFirst, mtu}}, DropRemoteAccess, 0},
		"WRITE, its start is elsewhere": {endBase - 1, 600, []packetOf{{wire.OpWriteFirst, mtu}}, DropRemoteAccess, 0},
	} {
		for _, service := range []wire.Service{wire.ServiceRC, wire.ServiceUC} {
			v := newVictim(t, service)
			v.postRecv(1, ib.SGE{Addr: endBase, Length: ownLen, LKey: testKey(3)})
			before := bytes.Clone(v.memory[:openLen])
			clear(v.frame[:])
			v.takeAll(row.addr, row.length, row.packets...)
			c := v.engine.Counters()
			if c.Drops[row.reason] != 1 || c.Dropped() != 1 {
				t.Errorf("%v, %s: %v", service, name, c.Drops)
			}
			if row.written == 0 && !bytes.Equal(v.memory[:openLen], before) {
				t.Errorf("%v, %s: memory was written", service, name)
			}
			if row.written > 0 {
				end := int(row.addr-endBase) + row.written
				if !bytes.Equal(v.memory[end:openLen], before[end:]) {
					t.Errorf("%v, %s: written beyond %d bytes", service, name, row.written)
				}
			}
			for _, done := range v.poll() {
				if done.Status == ib.WCSuccess {
					t.Errorf("%v, %s: %+v", service, name, done)
				}
			}
			if ended := v.qp.State == ib.QPStateErr; ended != (service == wire.ServiceRC) {
				t.Errorf("%v, %s: state %v", service, name, v.qp.State)
			}
			v.intact()
		}
	}
}
