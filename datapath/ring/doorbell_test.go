// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func newDoorbell() (*Doorbell, []byte) {
	memory := Alloc(DoorbellSize)
	return NewDoorbell(memory), memory
}

// collected returns the queue pairs that Collect reports, in order.
func collected(d *Doorbell) (queuePairs []uint32) {
	d.Collect(MaxQueuePairs, func(queuePair uint32) { queuePairs = append(queuePairs, queuePair) })
	return queuePairs
}

func TestDoorbell(t *testing.T) {
	d, _ := newDoorbell()
	if d.Pending() || collected(d) != nil {
		t.Error("work from the start")
	}
	want := []uint32{0, 1, 63, 64, 65, 4095, 4096, 40000, MaxQueuePairs - 1}
	for _, queuePair := range slices.Backward(want) {
		d.Ring(queuePair)
		d.Ring(queuePair) // twice counts once
	}
	if !d.Pending() {
		t.Error("Pending is false")
	}
	if got := collected(d); !slices.Equal(got, want) {
		t.Errorf("work for %v, want %v", got, want)
	}
	if d.Pending() || collected(d) != nil {
		t.Error("work after all was collected")
	}
}

// TestDoorbellEveryQueuePair rings for each queue pair separately.
func TestDoorbellEveryQueuePair(t *testing.T) {
	d, _ := newDoorbell()
	for queuePair := range uint32(MaxQueuePairs) {
		d.Ring(queuePair)
		if got := collected(d); len(got) != 1 || got[0] != queuePair {
			t.Fatalf("rung for %d, work for %v", queuePair, got)
		}
	}
}

// TestDoorbellLayout checks that the bits are at the documented offsets.
func TestDoorbellLayout(t *testing.T) {
	d, memory := newDoorbell()
	d.SetAsleep(true)
	d.Ring(0x1234) // word 0x48, bit 0x34
	set := map[int]byte{}
	for i, b := range memory {
		if b != 0 {
			set[i] = b
		}
	}
	const summary, bits = 128, 128 + 128
	want := map[int]byte{
		0:                      1,      // asleep
		summary + 0x48/8:       1 << 0, // bit 0x48 of the summary
		bits + 0x48*8 + 0x34/8: 1 << 4, // bit 0x34 of word 0x48
	}
	if len(set) != len(want) {
		t.Errorf("bytes set: %v, want %v", set, want)
	}
	for i, b := range want {
		if set[i] != b {
			t.Errorf("byte %d is %#x, want %#x", i, set[i], b)
		}
	}
}

// TestDoorbellOutOfRange: a number that is too large rings for another queue pair, and never accesses other memory.
func TestDoorbellOutOfRange(t *testing.T) {
	d, _ := newDoorbell()
	d.Ring(MaxQueuePairs + 5)
	d.Ring(1<<32 - 1)
	if got := collected(d); !slices.Equal(got, []uint32{5, MaxQueuePairs - 1}) {
		t.Errorf("work for %v", got)
	}
}

// TestDoorbellInParts: if Collect has a limit, no ring is lost, and queue pairs that ring repeatedly do not starve
// others.
func TestDoorbellInParts(t *testing.T) {
	d, _ := newDoorbell()
	busy := []uint32{0, 1, 70, 130, 5000}
	quiet := []uint32{69, 131, 4095, 9000, MaxQueuePairs - 1}
	for _, queuePair := range quiet {
		d.Ring(queuePair)
	}
	seen := map[uint32]int{}
	for range 20 {
		for _, queuePair := range busy {
			d.Ring(queuePair)
		}
		before := len(seen)
		n := 0
		d.Collect(2, func(queuePair uint32) { seen[queuePair]++; n++ })
		if n == 0 || n > 2+63 {
			t.Fatalf("%d at once, after %d", n, before)
		}
	}
	for _, queuePair := range append(busy, quiet...) {
		if seen[queuePair] == 0 {
			t.Errorf("%d had no turn", queuePair)
		}
	}
	for _, queuePair := range quiet {
		if seen[queuePair] != 1 {
			t.Errorf("%d had %d turns", queuePair, seen[queuePair])
		}
	}
	for d.Pending() {
		d.Collect(1, func(uint32) {})
	}
	if got := collected(d); got != nil {
		t.Errorf("work for %v when nothing was pending", got)
	}
}

// TestDoorbellSpuriousBits: for any contents of the memory, Collect terminates, and the numbers that it passes to work
// are below MaxQueuePairs.
func TestDoorbellSpuriousBits(t *testing.T) {
	d, memory := newDoorbell()
	d.summary[3].Store(1 << 9) // a summary bit without bits
	if got := collected(d); got != nil {
		t.Errorf("work for %v without a bit", got)
	}
	d.bits[5].Store(1) // a bit without a summary bit: ignored until it is rung
	if got := collected(d); got != nil || d.Pending() {
		t.Errorf("work for %v without a summary bit", got)
	}
	d.Ring(5*64 + 1)
	if got := collected(d); !slices.Equal(got, []uint32{5 * 64, 5*64 + 1}) {
		t.Errorf("work for %v", got)
	}
	for i := range memory {
		memory[i] = 0xFF
	}
	got := collected(d)
	if len(got) != MaxQueuePairs || !slices.IsSorted(got) || got[MaxQueuePairs-1] != MaxQueuePairs-1 || d.Pending() {
		t.Errorf("all bits set: work for %d queue pairs, pending %v", len(got), d.Pending())
	}
}

func TestDoorbellAsleep(t *testing.T) {
	d, _ := newDoorbell()
	if d.Asleep() || d.Ring(1) {
		t.Error("asleep from the start")
	}
	d.SetAsleep(true)
	if !d.Asleep() || !d.Ring(1) || !d.Ring(2) {
		t.Error("the card sleeps, but Ring does not request a wake-up")
	}
	d.SetAsleep(false)
	if d.Asleep() || d.Ring(1) {
		t.Error("the card is awake, but Ring requests a wake-up")
	}
}

// TestDoorbellLosesNothing: two programs ring while the card collects, and each ring is seen once. A program sets bits
// of a word again only after its last ring in that word was seen, so that a later ring cannot hide a lost one.
func TestDoorbellLosesNothing(t *testing.T) {
	const programs, laps = 2, 200
	d, _ := newDoorbell()
	var seen [bitWords]atomic.Uint32
	var passes, left atomic.Uint32
	// wait waits until the word's rings were all seen. Of two passes that end after a ring, one began after it.
	wait := func(w, rings uint32) bool {
		start := passes.Load()
		for passes.Load()-start < 2 && seen[w].Load() != rings {
			runtime.Gosched()
		}
		return seen[w].Load() == rings
	}
	left.Store(programs)
	for program := range uint32(programs) {
		go func() {
			defer left.Add(^uint32(0))
			for lap := range uint32(laps + 1) {
				for w := program; w < bitWords; w += programs {
					if !wait(w, lap) {
						t.Errorf("word %d: %d rings seen of %d", w, seen[w].Load(), lap)
						return
					}
					if lap < laps {
						d.Ring(w*64 + lap%64)
					}
				}
			}
		}()
	}
	for left.Load() > 0 {
		d.Collect(MaxQueuePairs, func(queuePair uint32) { seen[queuePair/64].Add(1) })
		passes.Add(1)
	}
}

// TestDoorbellShowsWhatWasPublished: Ring does not write a bit that is already set, but the card nevertheless sees all
// requests that were published before Ring.
func TestDoorbellShowsWhatWasPublished(t *testing.T) {
	const total = 200_000
	d, _ := newDoorbell()
	var published atomic.Uint32
	var done atomic.Bool
	var ringing sync.WaitGroup
	ringing.Go(func() {
		for range total {
			published.Add(1)
			d.Ring(7)
		}
		done.Store(true)
	})
	seen := uint32(0)
	look := func(uint32) { seen = published.Load() }
	for !done.Load() {
		d.Collect(MaxQueuePairs, look)
		runtime.Gosched()
	}
	ringing.Wait()
	d.Collect(MaxQueuePairs, look)
	if seen != total {
		t.Errorf("%d seen, %d published", seen, total)
	}
}

// TestDoorbellWakesTheSleeper: the card sets asleep, polls once more and sleeps; the program wakes it if Ring returns
// true. A lost wake-up would hang the test.
func TestDoorbellWakesTheSleeper(t *testing.T) {
	const rounds = 20_000
	d, _ := newDoorbell()
	var published atomic.Uint32
	wake, answers := make(chan struct{}, 1), make(chan uint32)
	go func() {
		for last := uint32(0); last < rounds; {
			worked := false
			d.Collect(MaxQueuePairs, func(uint32) { last, worked = published.Load(), true })
			if worked {
				answers <- last
				continue
			}
			d.SetAsleep(true)
			if !d.Pending() {
				<-wake
			}
			d.SetAsleep(false)
		}
	}()
	for i := range uint32(rounds) {
		published.Store(i + 1)
		if d.Ring(i) {
			select {
			case wake <- struct{}{}:
			default: // a wake-up is already pending
			}
		}
		if got := <-answers; got != i+1 {
			t.Fatalf("the card saw %d, want %d", got, i+1)
		}
	}
}

// A card that serves few queue pairs does not poll the bits of others, even if a program sets them.
func TestDoorbellServes(t *testing.T) {
	d := NewDoorbell(Alloc(DoorbellSize))
	for served, want := range map[int][]uint32{1: {0, 4095}, 4096: {0, 4095}, 4097: {0, 4095, 4096, 8191}, MaxQueuePairs: {0, 4095, 4096, 8191, 60000}} {
		d.Serve(MaxQueuePairs)
		d.Collect(MaxQueuePairs, func(uint32) {})
		d.Serve(served)
		for _, index := range []uint32{60000, 8191, 4096, 4095, 0} {
			d.Ring(index)
		}
		var got []uint32
		d.Collect(MaxQueuePairs, func(index uint32) { got = append(got, index) })
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("serving %d: %v, want %v", served, got, want)
		}
		if d.Pending() {
			t.Errorf("serving %d: work is left", served)
		}
	}
}
