// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"errors"
	"math"
	"testing"
)

func TestEntries(t *testing.T) {
	for asked, want := range map[uint32]uint32{
		0: 1, 1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 1000: 1024, 1024: 1024, 1025: 2048, 1 << 31: 1 << 31,
		1<<31 + 1: 0, math.MaxUint32: 0, // no such power of two: refused when the queue is created
	} {
		if got := Entries(asked); got != want {
			t.Errorf("Entries(%d): got %d, want %d", asked, got, want)
		}
	}
}

// TestGeometry: each kind of queue has the requested room, and not much more.
func TestGeometry(t *testing.T) {
	for _, row := range []struct {
		name string
		got  Geometry
		want Geometry
	}{
		{"send, 1 SGE", SendGeometry(100, 1, 0), Geometry{128, 64}},
		{"send, no SGE", SendGeometry(1, 0, 0), Geometry{1, 64}},
		{"send, 2 SGEs fill a line", SendGeometry(1, 2, 0), Geometry{1, 64}},
		{"send, 3 SGEs", SendGeometry(1, 3, 0), Geometry{1, 128}},
		{"send, inline beyond the SGEs", SendGeometry(1, 1, 64), Geometry{1, 128}},
		{"send, the most", SendGeometry(MaxEntries, MaxSGE, MaxInline), Geometry{MaxEntries, 1088}},
		{"receive, 1 SGE", RecvGeometry(100, 1), Geometry{128, 32}},
		{"receive, 2 SGEs", RecvGeometry(100, 2), Geometry{128, 64}},
		{"receive, the most", RecvGeometry(MaxEntries, MaxSGE), Geometry{MaxEntries, 288}},
		{"completion", CompletionGeometry(5), Geometry{8, 64}},
	} {
		if row.got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, row.got, row.want)
		}
	}
}

// TestRoomIsWhatWasAskedFor: a slot has at least the requested room, and never more than the card's copy of a slot.
func TestRoomIsWhatWasAskedFor(t *testing.T) {
	for sges := range uint32(MaxSGE + 1) {
		for inline := uint32(0); inline <= MaxInline; inline += 16 {
			g := SendGeometry(1, sges, inline)
			if maxSGE, maxInline := g.SendRoom(); maxSGE < sges || maxSGE > MaxSGE || maxInline < inline || maxInline > MaxInline {
				t.Fatalf("%d SGEs, %d bytes inline: room for %d and %d", sges, inline, maxSGE, maxInline)
			}
		}
		if room := RecvGeometry(1, sges).RecvRoom(); room < sges || room > MaxSGE {
			t.Errorf("%d SGEs: room for %d", sges, room)
		}
	}
}

// constructors holds the constructors of all six ends, by name.
var constructors = map[string]func([]byte, Geometry) error{
	"send producer":       func(m []byte, g Geometry) error { _, err := NewSendProducer(m, g); return err },
	"send consumer":       func(m []byte, g Geometry) error { _, err := NewSendConsumer(m, g); return err },
	"receive producer":    func(m []byte, g Geometry) error { _, err := NewRecvProducer(m, g); return err },
	"receive consumer":    func(m []byte, g Geometry) error { _, err := NewRecvConsumer(m, g); return err },
	"completion producer": func(m []byte, g Geometry) error { _, err := NewCompletionProducer(m, g); return err },
	"completion consumer": func(m []byte, g Geometry) error { _, err := NewCompletionConsumer(m, g); return err },
}

func TestLayoutRefused(t *testing.T) {
	enough := Alloc(1 << 16)
	for _, row := range []struct {
		name   string
		memory []byte
		g      Geometry
		good   bool
	}{
		{"fits", enough, Geometry{8, 64}, true},
		{"fits to the byte", enough[:slotsOffset+8*64], Geometry{8, 64}, true},
		{"one slot", enough, Geometry{1, 64}, true},
		{"the widest", enough, Geometry{8, maxStride}, true},
		{"no memory", nil, Geometry{8, 64}, false},
		{"one byte missing", enough[:slotsOffset+8*64-1], Geometry{8, 64}, false},
		{"index words alone", enough[:slotsOffset], Geometry{1, 64}, false},
		{"no entries", enough, Geometry{0, 64}, false},
		{"not a power of two", enough, Geometry{7, 64}, false},
		{"more than fit", enough, Geometry{1024, 64}, false},
		{"too many entries", enough, Geometry{MaxEntries * 2, 64}, false},
		{"entries at their most", enough, Geometry{math.MaxUint32, 64}, false},
		{"half of all entries", enough, Geometry{1 << 31, 64}, false},
		{"no stride", enough, Geometry{8, 0}, false},
		{"stride less than a header", enough, Geometry{8, 8}, false},
		{"stride not of SGEs", enough, Geometry{8, 72}, false},
		{"stride too wide", enough, Geometry{8, maxStride + 16}, false},
		{"stride at its most", enough, Geometry{8, math.MaxUint32 &^ 15}, false},
		{"all at its most", enough, Geometry{math.MaxUint32, math.MaxUint32}, false},
		{"a product of 2³²", enough, Geometry{1 << 20, 1 << 12}, false},
	} {
		for name, open := range constructors {
			if err := open(row.memory, row.g); row.good != (err == nil) || !row.good && !errors.Is(err, ErrLayout) {
				t.Errorf("%s, %s: %v", name, row.name, err)
			}
		}
	}
}

// TestLayoutOfTheMostEntries creates a queue with the maximum number of slots.
func TestLayoutOfTheMostEntries(t *testing.T) {
	g := Geometry{MaxEntries, 16}
	if err := g.check(Alloc(g.Size()), 16); err != nil {
		t.Error(err)
	}
}

// TestLayoutHoldsTheHeader checks that strides are refused that are long enough only for other kinds of queues.
func TestLayoutHoldsTheHeader(t *testing.T) {
	least := map[string]uint32{
		"send producer": 32, "send consumer": 32, "receive producer": 16, "receive consumer": 16,
		"completion producer": 64, "completion consumer": 64,
	}
	memory := Alloc(1 << 12)
	for name, open := range constructors {
		for stride := uint32(16); stride <= 128; stride += 16 {
			if err := open(memory, Geometry{8, stride}); (err == nil) != (stride >= least[name]) {
				t.Errorf("%s, stride %d: %v", name, stride, err)
			}
		}
	}
}

// TestSlotsOfTheLargestQueue checks that the slots of the largest queue are within 32 bits, and do not overlap.
func TestSlotsOfTheLargestQueue(t *testing.T) {
	if last := uint64(MaxEntries) * maxStride; last > math.MaxUint32 {
		t.Errorf("the last slot ends at %d", last)
	}
}

// pair returns the producer and the consumer of a queue with testEntries slots, whose indexes begin at start.
func pair(start uint32) (*producer, *consumer) {
	g := Geometry{testEntries, 64}
	memory := memoryFor(g, start)
	p, c := newProducer(memory, g), newConsumer(memory, g)
	return &p, &c
}

func TestIndices(t *testing.T) {
	for _, start := range starts {
		for batch := uint32(1); batch <= testEntries; batch++ {
			p, c := pair(start)
			for range 20 {
				if free, n := p.free(testEntries), c.available(1); free != testEntries || n != 0 {
					t.Fatalf("start %d, batch %d, empty: %d free, %d available", start, batch, free, n)
				}
				p.next += batch
				if n := c.available(1); n != 0 {
					t.Fatalf("start %d, batch %d: %d available before publish", start, batch, n)
				}
				p.publish()
				if free, n := p.free(testEntries), c.available(testEntries); free != testEntries-batch || n != batch {
					t.Fatalf("start %d, batch %d: %d free, %d available", start, batch, free, n)
				}
				c.next += batch
				if free := p.free(testEntries); free != testEntries-batch {
					t.Fatalf("start %d, batch %d: %d free before publish", start, batch, free)
				}
				c.publish()
			}
		}
	}
}

// TestIndexIsLookedAtWhenNeeded: the peer's index is loaded only if the last loaded one is not sufficient.
func TestIndexIsLookedAtWhenNeeded(t *testing.T) {
	p, c := pair(math.MaxUint32)
	if free := p.free(testEntries); free != testEntries {
		t.Fatalf("%d free", free)
	}
	p.next += 4
	p.publish()
	if n := c.available(1); n != 4 {
		t.Fatalf("%d available", n)
	}
	p.next += 4
	p.publish()
	if n := c.available(4); n != 4 {
		t.Errorf("%d available, 4 of them known", n)
	}
	if n := c.available(5); n != 8 {
		t.Errorf("%d available when more are wanted", n)
	}
	if free := p.free(1); free != 0 {
		t.Errorf("%d free of a full queue", free)
	}
	c.next += 4
	c.publish()
	if free := p.free(2); free != 4 {
		t.Errorf("got %d free slots, want the 4 returned ones", free)
	}
	c.next += 4
	c.publish()
	if free := p.free(4); free != 4 {
		t.Errorf("%d free, 4 of them known", free)
	}
}

func TestLyingIndexSaysNothing(t *testing.T) {
	for _, start := range starts {
		for _, lie := range lies {
			p, c := pair(start)
			c.peer.Store(start + lie)
			if n := c.available(1); n != 0 {
				t.Errorf("producer's index %d ahead of %d: %d available", lie, start, n)
			}
			c.peer.Store(start + 3)
			if n := c.available(1); n != 3 {
				t.Errorf("valid again after %d: %d available", lie, n)
			}
			p.peer.Store(start - lie)
			if n := p.free(1); n != 0 {
				t.Errorf("consumer's index %d behind %d: %d free", lie, start, n)
			}
			p.peer.Store(start)
			if n := p.free(testEntries); n != testEntries {
				t.Errorf("valid again after %d: %d free", lie, n)
			}
		}
	}
}

// TestAnyIndexIsBounded tries values of the peer's index around the own index. The result never exceeds the size of the
// queue, and is 0 for all invalid values.
func TestAnyIndexIsBounded(t *testing.T) {
	for _, start := range starts {
		for ahead := uint32(0); ahead < 40; ahead++ {
			word := start + ahead - 20
			p, c := pair(start)
			c.peer.Store(word)
			want := word - start
			if want > testEntries {
				want = 0
			}
			if n := c.available(testEntries); n != want {
				t.Errorf("index %d, producer's %d: %d available, want %d", start, word, n, want)
			}
			p.peer.Store(word)
			want = testEntries - (start - word)
			if start-word > testEntries {
				want = 0
			}
			if n := p.free(testEntries); n != want {
				t.Errorf("index %d, consumer's %d: %d free, want %d", start, word, n, want)
			}
		}
	}
}

// If the producer's index decreases or is out of bounds, entries are neither removed nor added, as the consumer may be
// processing the entries that were available before.
func TestWhatWasSeenStays(t *testing.T) {
	for _, start := range starts {
		for _, ahead := range []uint32{0, 1, 2, testEntries + 1, 1 << 31} {
			_, c := pair(start)
			c.peer.Store(start + 3)
			c.available(1)
			c.peer.Store(start + ahead)
			if n := c.available(testEntries); n != 3 {
				t.Errorf("3 seen at %d, then the index is %d ahead: %d available", start, ahead, n)
			}
			c.peer.Store(start + testEntries)
			if n := c.available(testEntries); n != testEntries {
				t.Errorf("full at %d, %d before that: %d available", start, ahead, n)
			}
		}
	}
}
