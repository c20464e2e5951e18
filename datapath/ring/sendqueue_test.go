// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

var testSend = Send{
	ID: 0x0102030405060708, Opcode: ib.WRSendWithImm, Flags: ib.SendSignaled | ib.SendSolicited, SGECount: 2, Imm: 0xDEADBEEF,
	AH: 0x11121314, RemoteQPN: 0x00A1A2A3, RemoteQKey: 0xB1B2B3B4, InlineLen: 0xC1C2C3C4,
}

var testSGEs = []ib.SGE{
	{Addr: 0x2122232425262728, Length: 0x31323334, LKey: 0x41424344},
	{Addr: 1, Length: 2, LKey: 3},
}

// goldenSend is testSend with its SGEs in its slot.
var goldenSend = []byte{
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // 0 id
	0x03,       // 8 opcode
	0x06,       // 9 flags
	0x02, 0x00, // 10 SGE count
	0xEF, 0xBE, 0xAD, 0xDE, // 12 immediate
	0x14, 0x13, 0x12, 0x11, // 16 AH
	0xA3, 0xA2, 0xA1, 0x00, // 20 remote QPN
	0xB4, 0xB3, 0xB2, 0xB1, // 24 remote Q_Key
	0xC4, 0xC3, 0xC2, 0xC1, // 28 inline length
	0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, // 32 address
	0x34, 0x33, 0x32, 0x31, // 40 length
	0x44, 0x43, 0x42, 0x41, // 44 lkey
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // 48 address
	0x02, 0x00, 0x00, 0x00, // 56 length
	0x03, 0x00, 0x00, 0x00, // 60 lkey
}

func TestSendLayout(t *testing.T) {
	g := SendGeometry(2, 2, 0)
	p, c, memory := sendEnds(t, g, 1) // the second slot
	data := p.Put(&testSend)
	if len(data) != len(goldenSend)-sendHeader {
		t.Fatalf("%d bytes of data in a slot", len(data))
	}
	for i, sge := range testSGEs {
		PutSGE(data[i*SGELen:], sge)
	}
	p.Publish()
	if slot := memory[256+64 : 256+128]; !bytes.Equal(slot, goldenSend) {
		t.Errorf("slot\n% x, want\n% x", slot, goldenSend)
	}
	if produced := word(memory, 0).Load(); produced != 2 {
		t.Errorf("producer's index %d", produced)
	}

	var got Send
	if n := c.Available(); n != 1 {
		t.Fatalf("%d available", n)
	}
	copied := c.Get(&got)
	if got != testSend || getSGE(copied) != testSGEs[0] || getSGE(copied[SGELen:]) != testSGEs[1] {
		t.Errorf("%+v, %+v, want %+v", got, getSGE(copied), testSend)
	}
	c.Advance(true)
	c.Publish()
	if consumed, signaled := word(memory, 128).Load(), word(memory, 132).Load(); consumed != 2 || signaled != 1 {
		t.Errorf("consumer's index %d, %d signaled", consumed, signaled)
	}
}

// TestSendGetCopies: later changes of a slot by the program affect neither the copy of the fixed part nor an SGE that
// was read.
func TestSendGetCopies(t *testing.T) {
	p, c, memory := sendEnds(t, SendGeometry(2, 1, 64), 0)
	PutSGE(p.Put(&testSend), testSGEs[0])
	p.Publish()
	var got Send
	if c.Available() != 1 {
		t.Fatal("nothing available")
	}
	sge := getSGE(c.Get(&got))
	garbage(memory[slotsOffset:], 1)
	if got != testSend || sge != testSGEs[0] {
		t.Errorf("%+v, %+v", got, sge)
	}
}

// TestSendAcrossWrap passes requests in batches of every size, through 2³².
func TestSendAcrossWrap(t *testing.T) {
	for _, start := range starts {
		for batch := uint32(1); batch <= testEntries; batch++ {
			p, c, _ := sendEnds(t, SendGeometry(testEntries, 1, 0), start)
			for round := range uint64(20) {
				for i := range uint64(batch) {
					PutSGE(p.Put(&Send{ID: round<<8 | i}), ib.SGE{Addr: i})
				}
				if c.Available() != 0 {
					t.Fatal("available before Publish")
				}
				p.Publish()
				takeSends(t, c, round, batch)
				if n := p.Outstanding(0); n != batch {
					t.Fatalf("%d outstanding before the card publishes, want %d", n, batch)
				}
				c.Publish()
				if n := p.Outstanding(0); n != 0 {
					t.Fatalf("start %d, batch %d: %d outstanding", start, batch, n)
				}
			}
		}
	}
}

// takeSends consumes a batch of unsignaled requests and checks that they are those of the round.
func takeSends(t *testing.T, c *SendConsumer, round uint64, batch uint32) {
	t.Helper()
	var s Send
	for i := range uint64(batch) {
		if n := uint64(c.Available()); n != uint64(batch)-i {
			t.Fatalf("%d available, want %d", n, uint64(batch)-i)
		}
		if data := c.Get(&s); s.ID != round<<8|i || getSGE(data).Addr != i {
			t.Fatalf("request %#x, want %#x", s.ID, round<<8|i)
		}
		c.Advance(false)
	}
	if c.Available() != 0 {
		t.Fatal("more available than was put")
	}
}

// TestOutstanding: the slot of an unsignaled request is free when the request is consumed, that of a signaled request
// when its completion is polled.
func TestOutstanding(t *testing.T) {
	for _, start := range starts {
		t.Run(fmt.Sprint(start), func(t *testing.T) {
			g := SendGeometry(testEntries, 1, 0)
			memory := memoryFor(g, start)
			word(memory, 132).Store(start) // number of completions, counted through 2³² too
			p, err := NewSendProducer(memory, g)
			if err != nil {
				t.Fatal(err)
			}
			c, err := NewSendConsumer(memory, g)
			if err != nil {
				t.Fatal(err)
			}
			polled := p.Signaled()
			expect := func(when string, want uint32) {
				t.Helper()
				if got := p.Outstanding(polled); got != want {
					t.Errorf("%s: %d outstanding, want %d", when, got, want)
				}
			}
			expect("empty", 0)
			for range testEntries {
				p.Put(&testSend)
			}
			expect("full, not published", 8)
			p.Publish()
			expect("full", 8)
			if n := c.Available(); n != 8 {
				t.Fatalf("%d available", n)
			}
			for i := range 6 {
				c.Advance(i%2 == 0) // three of them signaled
			}
			expect("six consumed, not published", 8)
			c.Publish()
			expect("six taken", 2+3)
			if n := p.Signaled() - start; n != 3 {
				t.Errorf("%d signaled", n)
			}
			polled++
			expect("one polled", 2+2)
			polled += 2
			expect("all polled", 2)
			c.Advance(true)
			c.Advance(true)
			c.Publish()
			expect("all taken", 2)
			polled += 2
			expect("all polled again", 0)
		})
	}
}

// TestOutstandingIsBounded: for any words of the card and any count, the result does not exceed the size of the queue.
// For invalid words the queue counts as full.
func TestOutstandingIsBounded(t *testing.T) {
	values := []uint32{0, 1, 7, 8, 9, 16, 1000, 1 << 31, math.MaxUint32 - 8, math.MaxUint32 - 7, math.MaxUint32}
	for _, start := range starts {
		for _, consumed := range values {
			for _, signaled := range values {
				p, _, memory := sendEnds(t, SendGeometry(testEntries, 1, 0), start)
				for range 4 {
					p.Put(&testSend)
				}
				word(memory, 128).Store(start + consumed)
				word(memory, 132).Store(start + signaled)
				want := uint32(8)
				if held := 4 - consumed; held <= 8 && signaled <= 8 {
					want = min(8, held+signaled)
				}
				if got := p.Outstanding(start); got != want {
					t.Errorf("index %d ahead, %d completions: %d outstanding, want %d", consumed, signaled, got, want)
				}
			}
		}
	}
}

func TestSendSkip(t *testing.T) {
	p, c, _ := sendEnds(t, SendGeometry(testEntries, 1, 0), math.MaxUint32-2)
	for range 5 {
		p.Put(&testSend)
	}
	p.Publish()
	if c.Available() == 0 {
		t.Fatal("nothing available")
	}
	c.Advance(true)
	c.Skip()
	if n := c.Available(); n != 0 {
		t.Errorf("%d available after Skip", n)
	}
	if n := p.Outstanding(0); n != 1 || p.Signaled() != 1 {
		t.Errorf("%d outstanding, %d signaled; one request was completed before Skip", n, p.Signaled())
	}
	p.Put(&Send{ID: 9})
	p.Publish()
	var s Send
	if c.Available() != 1 {
		t.Fatal("nothing available after Skip")
	}
	if c.Get(&s); s.ID != 9 {
		t.Errorf("request %d, want 9", s.ID)
	}
}

func TestSendLyingProducer(t *testing.T) {
	for _, start := range starts {
		for _, lie := range lies {
			_, c, memory := sendEnds(t, SendGeometry(testEntries, 1, 0), start)
			garbage(memory[slotsOffset:], uint64(lie))
			word(memory, 0).Store(start + lie)
			if n := c.Available(); n != 0 {
				t.Errorf("index %d ahead: %d available", lie, n)
			}
			c.Skip()
			if consumed := word(memory, 128).Load(); consumed != start {
				t.Errorf("index %d ahead: Skip went to %d", lie, consumed-start)
			}
		}
	}
}
