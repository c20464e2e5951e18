// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// ringOn returns both sides of a ring in plain memory, whose indices begin at start.
func ringOn[T any](size, start uint32) (*producer[T], *consumer[T]) {
	entries := make([]T, size)
	produced, consumed, flags := new(atomic.Uint32), new(atomic.Uint32), new(atomic.Uint32)
	produced.Store(start)
	consumed.Store(start)
	return &producer[T]{entries, size - 1, start, produced, consumed, flags},
		&consumer[T]{entries, size - 1, start, consumed, produced}
}

// TestRingAcrossWrap passes numbers in bursts of every size while the indices pass 2^32.
func TestRingAcrossWrap(t *testing.T) {
	const size = 8
	for burst := uint32(1); burst <= size; burst++ {
		p, c := ringOn[uint64](size, math.MaxUint32-20)
		sent, received := uint64(0), uint64(0)
		for range 50 {
			for range burst {
				p.put(sent)
				sent++
			}
			if n := c.available(); n != 0 {
				t.Fatalf("burst %d: %d available before publish", burst, n)
			}
			p.publish()
			if n := c.available(); n != burst || p.pending() != burst || p.room() != size-burst {
				t.Fatalf("burst %d: %d available, %d pending, room for %d", burst, n, p.pending(), p.room())
			}
			for i := range burst {
				if got := c.at(i); got != received {
					t.Fatalf("burst %d: got %d, want %d", burst, got, received)
				}
				received++
			}
			c.release(burst)
			if p.pending() != 0 || c.available() != 0 {
				t.Fatalf("burst %d: not empty: %d pending, %d available", burst, p.pending(), c.available())
			}
		}
		if p.next > size*50 {
			t.Fatal("the indices did not wrap")
		}
	}
}

func TestRingPartialRelease(t *testing.T) {
	p, c := ringOn[uint64](4, math.MaxUint32)
	for i := range uint64(4) {
		p.put(i)
	}
	p.publish()
	if p.room() != 0 {
		t.Errorf("room for %d in a full ring", p.room())
	}
	c.release(3)
	if p.room() != 3 || c.available() != 1 || c.at(0) != 3 {
		t.Errorf("room for %d, %d available, first is %d", p.room(), c.available(), c.at(0))
	}
}

// TestRingLyingPeer sets invalid indices for each side.
func TestRingLyingPeer(t *testing.T) {
	for _, start := range []uint32{0, 100, math.MaxUint32 - 1} {
		for _, lie := range []uint32{9, 1000, 1 << 31, math.MaxUint32 - 8} {
			p, c := ringOn[uint64](8, start)
			c.peer.Store(start + lie)
			if n := c.available(); n != 0 {
				t.Errorf("producer index %d ahead: %d of 8 available", lie, n)
			}
			p.peer.Store(start + lie)
			if p.pending() != 8 || p.room() != 0 {
				t.Errorf("consumer index %d ahead: %d pending, room for %d", lie, p.pending(), p.room())
			}
		}
	}
}

func TestRingNeedWakeup(t *testing.T) {
	p, _ := ringOn[uint64](2, 0)
	if p.needWakeup() {
		t.Error("wake-up needed without the flag")
	}
	p.flags.Store(unix.XDP_RING_NEED_WAKEUP | 1<<7)
	if !p.needWakeup() {
		t.Error("flag not seen")
	}
}

// TestRingConcurrent has the race detector check the transfer of entries.
func TestRingConcurrent(t *testing.T) {
	const total = 100_000
	p, c := ringOn[unix.XDPDesc](64, math.MaxUint32-total/2)
	go func() {
		for sent := uint64(0); sent < total; {
			n := min(uint64(p.room()), total-sent, 7)
			for range n {
				p.put(unix.XDPDesc{Addr: sent, Len: uint32(sent)})
				sent++
			}
			p.publish()
			if n == 0 {
				runtime.Gosched()
			}
		}
	}()
	for want := uint64(0); want < total; {
		n := c.available()
		for i := range n {
			if got := c.at(i); got.Addr != want || got.Len != uint32(want) {
				t.Fatalf("got %+v, want number %d", got, want)
			}
			want++
		}
		c.release(n)
		if n == 0 {
			runtime.Gosched()
		}
	}
}

// BenchmarkRing passes one entry through the ring, in bursts of 64.
func BenchmarkRing(b *testing.B) {
	const burst = 64
	p, c := ringOn[unix.XDPDesc](2048, 0)
	sum := uint64(0)
	for left := b.N; left > 0; left -= burst {
		for i := range uint64(burst) {
			p.put(unix.XDPDesc{Addr: i})
		}
		p.publish()
		n := c.available()
		for i := range n {
			sum += c.at(i).Addr
		}
		c.release(n)
	}
	if sum == 0 {
		b.Error("no entry was received")
	}
}
