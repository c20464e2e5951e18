// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"testing"

	"github.com/roced/roced/verbs/ib"
)

func TestRDMAFields(t *testing.T) {
	s := SendConnected{
		ID: 0xFEDCBA9876543210, Opcode: ib.WRAtomicCmpAndSwp, Flags: ib.SendSignaled | ib.SendFence, SGECount: 1, Imm: 7,
		RemoteAddr: 0x0123456789ABCDEF, RKey: 0x8899AABB, InlineLen: 0x11223344,
	}
	g := ConnectedGeometry(4, 1, 0)
	p, c, _ := sendEnds(t, g, 0)
	atomic, bind, sge := Atomic{1 << 63, 42}, Bind{1 << 40, 5, ib.AccessRemoteWrite}, ib.SGE{Addr: 9, Length: 8, LKey: 3}
	data := p.PutConnected(&s)
	PutAtomic(data, atomic)
	PutSGE(data[AtomicLen:], sge)
	PutBind(p.PutConnected(&s), bind)
	p.Publish()
	var got SendConnected
	data = c.GetConnected(0, &got)
	if got != s || got.InvalidateRKey() != 7 || GetAtomic(data) != atomic || getSGE(data[AtomicLen:]) != sge {
		t.Errorf("%+v %+v", got, GetAtomic(data))
	}
	c.Advance(false)
	if data = c.GetConnected(0, &got); GetBind(data) != bind {
		t.Errorf("%+v", GetBind(data))
	}
}

// An XRC initiator's slot contains the number of the peer's SRQ, followed by the fields of an RC queue pair.
func TestXRCFields(t *testing.T) {
	for entries := range uint32(3) {
		for sges := uint32(0); sges <= MaxSGE; sges++ {
			for inline := uint32(0); inline <= 512; inline += 32 {
				g := XRCGeometry(entries, sges, inline)
				if maxSGE, maxInline := g.XRCRoom(); maxSGE < sges || maxSGE > MaxSGE || maxInline < inline || maxSGE < connectedData/SGELen {
					t.Fatalf("%d SGEs and %d bytes inline: room for %d and %d", sges, inline, maxSGE, maxInline)
				}
			}
		}
	}
	g := XRCGeometry(2, 1, 0)
	memory := Alloc(g.Size())
	for i := range memory {
		memory[i] = 0xA5
	}
	clear(memory[:slotsOffset])
	p, err := NewXRCSendProducer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewXRCSendConsumer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	s := SendConnected{ID: 1, Opcode: ib.WRAtomicFetchAndAdd, SGECount: 1, RemoteAddr: 2, RKey: 3, RemoteSRQN: 0x8899AABB}
	data := p.PutConnected(&s)
	PutAtomic(data, Atomic{4, 5})
	PutSGE(data[AtomicLen:], ib.SGE{Addr: 6, Length: 8, LKey: 7})
	p.Publish()
	var got SendConnected
	data = c.GetConnected(0, &got)
	if got != s || GetAtomic(data) != (Atomic{4, 5}) || getSGE(data[AtomicLen:]) != (ib.SGE{Addr: 6, Length: 8, LKey: 7}) || c.Available() != 1 {
		t.Errorf("%+v %+v", got, GetAtomic(data))
	}
	if &data[0] != &c.Data(0)[0] || string(memory[slotsOffset+32:][:16]) != "\xBB\xAA\x99\x88"+string(make([]byte, 12)) {
		t.Errorf("% x", memory[slotsOffset+32:][:16])
	}
	if _, err := NewXRCSendProducer(memory, Geometry{2, 32}); err == nil {
		t.Error("accepted a slot without room for the number")
	}
}
