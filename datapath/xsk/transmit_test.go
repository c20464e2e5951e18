// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func mustReserve(t testing.TB, s *Socket) Reserved {
	t.Helper()
	r, ok := s.Reserve()
	if !ok {
		t.Fatal("no free slot")
	}
	return r
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", what)
		}
	}()
	f()
}

func TestTransmit(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 4, TxFrames: 4})
	for round := range 100 {
		for i := range 3 {
			r := mustReserve(t, s)
			copy(r.Bytes(), frame(round+i, 64))
			s.Submit(r, 64+i)
		}
		if n := k.tx.available(); n != 0 {
			t.Fatalf("%d descriptors visible before Flush", n)
		}
		if n := s.Flush(); n != 3 || s.Unsent() != 3 {
			t.Fatalf("unsent is %d and %d, want 3", n, s.Unsent())
		}
		for i, desc := range k.take() {
			if desc.Addr < s.rxSize() || desc.Addr%2048 != 0 || desc.Len != uint32(64+i) || desc.Options != 0 {
				t.Fatalf("descriptor %d: %+v", i, desc)
			}
			if k.umem[desc.Addr] != byte(round+i) {
				t.Fatalf("descriptor %d has the bytes of another frame", i)
			}
			k.complete(desc.Addr)
		}
		if n := s.Flush(); n != 0 || len(s.free) != 4 {
			t.Fatalf("%d unsent, %d slots free, want 0 and 4", n, len(s.free))
		}
	}
}

// TestTransmitReuse expects that the most recently used slots are reused first.
func TestTransmitReuse(t *testing.T) {
	s, k := newFake(t, Config{TxFrames: 64})
	var addrs []uint64
	for range 10 {
		for range 2 {
			s.Submit(mustReserve(t, s), 64)
		}
		s.Flush()
		for _, desc := range k.take() {
			addrs = append(addrs, desc.Addr)
			k.complete(desc.Addr)
		}
		s.Flush()
	}
	slices.Sort(addrs)
	if used := len(slices.Compact(addrs)); used != 2 {
		t.Errorf("used %d slots, want two", used)
	}
}

func TestReserveUntilDry(t *testing.T) {
	s, k := newFake(t, Config{TxFrames: 4})
	for range 4 {
		s.Submit(mustReserve(t, s), 64)
	}
	if _, ok := s.Reserve(); ok {
		t.Fatal("got a fifth slot of four")
	}
	s.Flush()
	k.complete(k.take()[2].Addr)
	mustReserve(t, s)
	if _, ok := s.Reserve(); ok {
		t.Fatal("got two slots for one completion")
	}
}

func TestCancel(t *testing.T) {
	s, _ := newFake(t, Config{TxFrames: 1})
	for range 3 {
		s.Cancel(mustReserve(t, s))
	}
	if n := s.Flush(); n != 0 {
		t.Errorf("%d unsent after Cancel", n)
	}
}

func TestTransmitMistakes(t *testing.T) {
	s, _ := newFake(t, Config{TxFrames: 2, MaxFrame: 1500})
	r := mustReserve(t, s)
	if len(r.Bytes()) != 1500 {
		t.Errorf("%d bytes reserved, want 1500", len(r.Bytes()))
	}
	mustPanic(t, "no bytes", func() { s.Submit(r, 0) })
	mustPanic(t, "a negative length", func() { s.Submit(r, -1) })
	mustPanic(t, "too many bytes", func() { s.Submit(r, 1501) })
	mustPanic(t, "Submit of nothing", func() { s.Submit(Reserved{}, 60) })
	mustPanic(t, "Cancel of nothing", func() { s.Cancel(Reserved{}) })
	s.Submit(r, 1500)
	mustPanic(t, "second Submit", func() { s.Submit(r, 60) })
	mustPanic(t, "Cancel after Submit", func() { s.Cancel(r) })
	c := mustReserve(t, s)
	s.Cancel(c)
	mustPanic(t, "Submit after Cancel", func() { s.Submit(c, 60) })
}

func TestTransmitSplit(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 4, TxFrames: 3, MaxFrame: 5000, MultiBuffer: true})
	for _, test := range []struct {
		length int
		want   []uint32
	}{
		{1, []uint32{1}},
		{2048, []uint32{2048}},
		{2049, []uint32{2048, 1}},
		{4096, []uint32{2048, 2048}},
		{5000, []uint32{2048, 2048, 904}},
	} {
		r := mustReserve(t, s)
		if len(r.Bytes()) != 5000 {
			t.Fatalf("%d bytes reserved", len(r.Bytes()))
		}
		r.Bytes()[test.length-1] = 0xee
		s.Submit(r, test.length)
		s.Flush()
		descs := k.take()
		var lengths []uint32
		for i, desc := range descs {
			lengths = append(lengths, desc.Len)
			if desc.Addr != descs[0].Addr+uint64(i)*2048 {
				t.Errorf("length %d: part %d is not adjacent", test.length, i)
			}
			if more := desc.Options == unix.XDP_PKT_CONTD; more != (i < len(descs)-1) {
				t.Errorf("length %d: part %d has options %#x", test.length, i, desc.Options)
			}
		}
		if !slices.Equal(lengths, test.want) {
			t.Errorf("length %d: parts of %v, want %v", test.length, lengths, test.want)
		}
		if k.umem[descs[0].Addr+uint64(test.length)-1] != 0xee {
			t.Errorf("length %d: last byte is not where the descriptors say", test.length)
		}
		// Only the last completion frees the slot, whatever the order.
		for i, desc := range slices.Backward(descs) {
			if len(s.free) != 2 {
				t.Errorf("length %d: %d slots free with %d completions to come", test.length, len(s.free), i+1)
			}
			k.complete(desc.Addr)
			s.Flush()
		}
		if len(s.free) != 3 {
			t.Fatalf("length %d: %d slots free afterwards, want 3", test.length, len(s.free))
		}
	}
}

// TestCompletionLies completes addresses that are not in flight.
func TestCompletionLies(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 4, TxFrames: 4})
	held := mustReserve(t, s)
	s.Submit(mustReserve(t, s), 64)
	s.Flush()
	sent := k.take()[0].Addr
	k.complete(0, s.rxSize()-1, s.size(), 1<<64-1) // not in a slot
	s.Flush()
	k.complete(s.start(held.slot), s.start(3), sent, sent) // reserved, free, right, twice
	s.Flush()
	if len(s.free) != 3 {
		t.Errorf("%d slots free, want all except the reserved one", len(s.free))
	}
	s.Submit(held, 64)
}

func TestNoAllocation(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 64, TxFrames: 64, MultiBuffer: true, MaxFrame: 4096})
	burst := make([]Received, 8)
	payload := frame(1, 1000)
	allocations := testing.AllocsPerRun(1000, func() {
		k.deliver(payload)
		k.deliver(payload, payload)
		if s.Receive(burst) != 2 {
			t.Error("frames missing")
		}
		s.Release()
		for _, length := range []int{60, 4096} {
			r, _ := s.Reserve()
			s.Submit(r, length)
		}
		r, _ := s.Reserve()
		s.Cancel(r)
		s.Flush()
		for range k.tx.available() {
			k.completion.put(k.tx.at(0).Addr)
			k.tx.release(1)
		}
		k.completion.publish()
		s.WakeReceive()
	})
	if allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// BenchmarkTransmit passes one frame through Reserve, Submit and Flush, in bursts of 64.
func BenchmarkTransmit(b *testing.B) {
	const burst = 64
	s, k := newFake(b, Config{})
	for left := b.N; left > 0; left -= burst {
		for range burst {
			r, _ := s.Reserve()
			s.Submit(r, 64)
		}
		s.Flush()
		for i := range uint32(burst) {
			k.completion.put(k.tx.at(i).Addr)
		}
		k.tx.release(burst)
		k.completion.publish()
	}
}
