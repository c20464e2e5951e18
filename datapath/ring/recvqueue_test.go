// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

// goldenRecv is a request with testSGEs in its slot.
var goldenRecv = []byte{
	0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, // 0 id
	0x02, 0x00, 0x00, 0x00, // 8 SGE count
	0x00, 0x00, 0x00, 0x00, // 12 reserved
	0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, // 16 address
	0x34, 0x33, 0x32, 0x31, // 24 length
	0x44, 0x43, 0x42, 0x41, // 28 lkey
	0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // 32 address
	0x02, 0x00, 0x00, 0x00, // 40 length
	0x03, 0x00, 0x00, 0x00, // 44 lkey
}

func TestRecvLayout(t *testing.T) {
	p, c, memory := recvEnds(t, RecvGeometry(2, 2), 1) // the second slot
	p.Put(0x0102030405060708, testSGEs)
	p.Publish()
	if slot := memory[256+64 : 256+64+len(goldenRecv)]; !bytes.Equal(slot, goldenRecv) {
		t.Errorf("slot\n% x, want\n% x", slot, goldenRecv)
	}
	var r Recv
	if !c.Peek(&r) || r.ID != 0x0102030405060708 || !slices.Equal(sgesOf(&r), testSGEs[:]) {
		t.Errorf("%+v", r)
	}
}

// TestRecvAcrossWrap passes requests in batches of every size, through 2³².
func TestRecvAcrossWrap(t *testing.T) {
	for _, start := range starts {
		for batch := uint32(1); batch <= testEntries; batch++ {
			p, c, _ := recvEnds(t, RecvGeometry(testEntries, 1), start)
			polled := p.Posted()
			for round := range uint64(20) {
				for i := range uint64(batch) {
					p.Put(round<<8|i, []ib.SGE{{Addr: i}})
				}
				var r Recv
				if c.Peek(&r) {
					t.Fatal("available before Publish")
				}
				p.Publish()
				if n := p.Outstanding(polled); n != batch {
					t.Fatalf("%d outstanding, want %d", n, batch)
				}
				for i := range uint64(batch) {
					if !c.Peek(&r) || r.ID != round<<8|i || len(r.List()) != SGELen || sgesOf(&r)[0].Addr != i {
						t.Fatalf("start %d, batch %d: %#x, want %#x", start, batch, r.ID, round<<8|i)
					}
					c.Advance()
				}
				if c.Peek(&r) {
					t.Fatal("more available than was put")
				}
				polled += batch
				if n := p.Outstanding(polled); n != 0 || p.Posted() != polled {
					t.Fatalf("%d outstanding, %d posted", n, p.Posted()-start)
				}
			}
		}
	}
}

// TestRecvPeekStays: Peek does not consume a request.
func TestRecvPeekStays(t *testing.T) {
	p, c, _ := recvEnds(t, RecvGeometry(2, 1), 0)
	p.Put(1, nil)
	p.Put(2, nil)
	p.Publish()
	var r Recv
	for range 3 {
		if !c.Peek(&r) || r.ID != 1 || len(r.List()) != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if c.Advance(); !c.Peek(&r) || r.ID != 2 {
		t.Errorf("%+v after Advance", r)
	}
}

// TestRecvCountIsCut: SGE counts that exceed the slot are reduced to its capacity.
func TestRecvCountIsCut(t *testing.T) {
	for _, row := range []struct {
		maxSGE, says, want uint32
	}{
		{1, 0, 0}, {1, 1, 1}, {1, 2, 1}, {1, math.MaxUint32, 1}, {1, 1 << 28, 1},
		{2, 3, 3}, {2, 4, 3}, {MaxSGE, MaxSGE, MaxSGE}, {MaxSGE, MaxSGE + 1, MaxSGE}, {MaxSGE, math.MaxUint32, MaxSGE},
	} {
		p, c, memory := recvEnds(t, RecvGeometry(1, row.maxSGE), 0)
		p.Put(1, nil)
		word(memory, slotsOffset+recvSGECount).Store(row.says)
		p.Publish()
		var r Recv
		if !c.Peek(&r) || len(r.List()) != int(row.want)*SGELen {
			t.Errorf("slot for %d, count %d: %d, want %d", row.maxSGE, row.says, len(r.List())/SGELen, row.want)
		}
	}
}

// TestRecvCountIsCutToMaxSGE: SGE counts are reduced to MaxSGE, as a slot may be longer than the card's copy of it.
func TestRecvCountIsCutToMaxSGE(t *testing.T) {
	g := Geometry{Entries: 1, Stride: maxStride}
	p, c, memory := recvEnds(t, g, 0)
	p.Put(1, nil)
	word(memory, slotsOffset+recvSGECount).Store(100)
	p.Publish()
	var r Recv
	if !c.Peek(&r) || len(r.List()) != MaxSGE*SGELen || g.RecvRoom() != MaxSGE {
		t.Errorf("%d SGEs of %d", len(r.List())/SGELen, g.RecvRoom())
	}
}

func TestRecvOutstandingIsBounded(t *testing.T) {
	for _, start := range starts {
		p, _, _ := recvEnds(t, RecvGeometry(testEntries, 1), start)
		for range 3 {
			p.Put(0, nil)
		}
		for _, row := range []struct{ polled, want uint32 }{
			{0, 3}, {1, 2}, {3, 0}, {4, 8}, {1 << 31, 8}, {math.MaxUint32 - 4, 8}, {math.MaxUint32, 4},
		} {
			if got := p.Outstanding(start + row.polled); got != row.want {
				t.Errorf("%d polled: %d outstanding, want %d", row.polled, got, row.want)
			}
		}
	}
}

func TestRecvFlush(t *testing.T) {
	p, c, memory := recvEnds(t, RecvGeometry(2, 1), 0)
	if p.MustRing() {
		t.Error("must ring from the start")
	}
	if c.SetFlush(true); !p.MustRing() || word(memory, 132).Load() != 1 {
		t.Error("flush not seen")
	}
	if c.SetFlush(false); p.MustRing() {
		t.Error("end of flush not seen")
	}
}

func TestRecvSkip(t *testing.T) {
	p, c, memory := recvEnds(t, RecvGeometry(testEntries, 1), math.MaxUint32-2)
	for id := range uint64(5) {
		p.Put(id, nil)
	}
	p.Publish()
	c.Skip()
	var r Recv
	if c.Peek(&r) || word(memory, 128).Load() != p.Posted() {
		t.Errorf("request %d after Skip", r.ID)
	}
	p.Put(9, nil)
	p.Publish()
	if !c.Peek(&r) || r.ID != 9 {
		t.Errorf("request %d, want 9", r.ID)
	}
}

func TestRecvLyingProducer(t *testing.T) {
	for _, start := range starts {
		for _, lie := range lies {
			_, c, memory := recvEnds(t, RecvGeometry(testEntries, 1), start)
			garbage(memory[slotsOffset:], uint64(lie))
			word(memory, 0).Store(start + lie)
			var r Recv
			if c.Peek(&r) {
				t.Errorf("index %d ahead: a request", lie)
			}
			c.Skip()
			if consumed := word(memory, 128).Load(); consumed != start {
				t.Errorf("index %d ahead: Skip went to %d", lie, consumed-start)
			}
		}
	}
}

// TestRecvWaiting: both ends of an SRQ count the requests that are not consumed; the program uses the index that the
// card has published. With an invalid index the queue counts as full for the program, and as empty for the card.
func TestRecvWaiting(t *testing.T) {
	for _, start := range starts {
		p, c, memory := recvEnds(t, RecvGeometry(testEntries, 1), start)
		for i := range uint32(testEntries) {
			p.Put(uint64(i), nil)
			if p.Publish(); p.Waiting() != i+1 || c.Waiting() != i+1 {
				t.Fatalf("start %d, %d posted: %d and %d wait", start, i+1, p.Waiting(), c.Waiting())
			}
		}
		var r Recv
		c.Peek(&r)
		if c.Advance(); p.Waiting() != testEntries || c.Waiting() != testEntries-1 {
			t.Fatalf("one consumed: %d and %d wait", p.Waiting(), c.Waiting())
		}
		if c.Publish(); p.Waiting() != testEntries-1 {
			t.Fatalf("published: %d wait", p.Waiting())
		}
		word(memory, consumerWords).Store(start + 3*testEntries)
		word(memory, 0).Store(start + 3*testEntries)
		if p.Waiting() != testEntries {
			t.Errorf("the card's index is out of bounds: %d wait", p.Waiting())
		}
	}
}
