// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// FuzzPeerLies opens the card's ends, and the program's end of a completion queue, on memory with any contents, and
// lets the other side change its words. No call panics, and no result exceeds the size of the queue.
func FuzzPeerLies(f *testing.F) {
	f.Add(uint8(3), uint8(4), uint32(0), uint32(8), uint32(9), uint64(1))
	f.Add(uint8(0), uint8(4), uint32(math.MaxUint32), uint32(0), uint32(1), uint64(2))
	f.Add(uint8(4), uint8(68), uint32(math.MaxUint32-5), uint32(2), uint32(1<<31), uint64(3))
	f.Add(uint8(5), uint8(128), uint32(7), uint32(math.MaxUint32), uint32(6), uint64(4))
	f.Fuzz(func(t *testing.T, entries, stride uint8, own, first, second uint32, seed uint64) {
		g := Geometry{Entries: 1 << (entries % 8), Stride: uint32(stride) * 16}
		for _, use := range []func(*testing.T, []byte, Geometry, []uint32){lieToSendConsumer, lieToRecvConsumer, lieToCompletionConsumer, lieToCompletionProducer} {
			memory := Alloc(g.Size())
			garbage(memory, seed)
			word(memory, 0).Store(own)
			word(memory, consumerWords).Store(own)
			use(t, memory, g, []uint32{first, own + first, second, own + second})
		}
	})
}

func lieToSendConsumer(t *testing.T, memory []byte, g Geometry, lies []uint32) {
	c, err := NewSendConsumer(memory, g)
	if err != nil {
		return
	}
	var s Send
	for _, lie := range lies {
		word(memory, 0).Store(lie)
		n := c.Available()
		if n > g.Entries {
			t.Fatalf("%d of %d available", n, g.Entries)
		}
		for i := range n {
			c.Get(&s)
			c.Advance(i%2 == 0)
		}
		c.Publish()
	}
	c.Skip()
}

func lieToRecvConsumer(t *testing.T, memory []byte, g Geometry, lies []uint32) {
	c, err := NewRecvConsumer(memory, g)
	if err != nil {
		return
	}
	var r Recv
	for _, lie := range lies {
		word(memory, 0).Store(lie)
		for taken := uint32(0); c.Peek(&r); taken++ {
			if taken >= g.Entries || len(r.List()) > int(g.RecvRoom())*SGELen {
				t.Fatalf("request %d of %d, %d SGEs of %d", taken, g.Entries, len(r.List())/SGELen, g.RecvRoom())
			}
			_ = sgesOf(&r)
			c.Advance()
		}
	}
	c.Skip()
}

func lieToCompletionConsumer(t *testing.T, memory []byte, g Geometry, lies []uint32) {
	c, err := NewCompletionConsumer(memory, g)
	if err != nil {
		return
	}
	var e CQE
	for _, lie := range lies {
		word(memory, 0).Store(lie)
		n := c.Available(g.Entries)
		if n > g.Entries {
			t.Fatalf("%d of %d available", n, g.Entries)
		}
		for range n {
			c.Get(&e)
		}
		c.Publish()
	}
	c.Arm(true)
	c.SetThreshold(lies[0])
	c.ArmCount()
	_ = c.Failed()
}

func lieToCompletionProducer(t *testing.T, memory []byte, g Geometry, lies []uint32) {
	p, err := NewCompletionProducer(memory, g)
	if err != nil {
		return
	}
	for _, lie := range lies {
		word(memory, consumerWords).Store(lie)
		word(memory, cqArmedWord).Store(lie)
		word(memory, cqThresholdWord).Store(lie >> 1)
		for put := uint32(0); p.Put(&testCQE); put++ {
			if put >= g.Entries {
				t.Fatalf("more than %d entries put", g.Entries)
			}
		}
		p.Publish()
		if p.Unread() > g.Entries {
			t.Fatalf("%d of %d unread", p.Unread(), g.Entries)
		}
		takeArmed(p, false)
	}
}

// FuzzRoundTrip checks that one end reads the same entries that the other end has written.
func FuzzRoundTrip(f *testing.F) {
	f.Add(uint64(1), uint32(2), uint32(3), uint32(4), uint32(5), uint16(6), uint8(7), uint8(8), uint32(math.MaxUint32))
	f.Add(uint64(math.MaxUint64), uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(math.MaxUint32), uint32(math.MaxUint32),
		uint16(math.MaxUint16), uint8(math.MaxUint8), uint8(math.MaxUint8), uint32(0))
	f.Fuzz(func(t *testing.T, id uint64, a, b, c, d uint32, e uint16, g, h uint8, start uint32) {
		sge := ib.SGE{Addr: id ^ uint64(a), Length: b, LKey: ib.LKey(c)}
		sends, takes, _ := sendEnds(t, SendGeometry(2, 1, 0), start)
		send := Send{ID: id, Opcode: ib.Opcode(g), Flags: ib.SendFlags(h), SGECount: e, Imm: a, AH: b, RemoteQPN: wire.QPN(c), RemoteQKey: wire.QKey(d), InlineLen: a ^ d}
		PutSGE(sends.Put(&send), sge)
		sends.Publish()
		var s Send
		if takes.Available() != 1 {
			t.Fatal("no request")
		}
		if data := takes.Get(&s); s != send || getSGE(data) != sge {
			t.Errorf("%+v, want %+v", s, send)
		}

		posts, peeks, _ := recvEnds(t, RecvGeometry(2, 1), start)
		posts.Put(id, []ib.SGE{sge})
		posts.Publish()
		var r Recv
		if !peeks.Peek(&r) || r.ID != id || len(r.List()) != SGELen || sgesOf(&r)[0] != sge {
			t.Errorf("%+v, want %+v", r, sge)
		}

		puts, polls, _ := completionEnds(t, CompletionGeometry(2), start)
		cqe := CQE{ID: id, Status: ib.WCStatus(g), Opcode: ib.WCOpcode(h), Flags: ib.WCFlags(e), ByteLen: a, Imm: b, QPN: wire.QPN(c), SourceQP: wire.QPN(d), Token: a ^ b, VendorErr: b ^ c, PKeyIndex: e ^ 1}
		var got CQE
		puts.Put(&cqe)
		puts.Publish()
		if polls.Available(1) != 1 {
			t.Fatal("no completion")
		}
		if polls.Get(&got); got != cqe {
			t.Errorf("%+v, want %+v", got, cqe)
		}
	})
}
