// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func frame(i, length int) []byte { return bytes.Repeat([]byte{byte(i)}, length) }

func TestReceive(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 4, RxFrames: 6})
	burst := make([]Received, 3)
	for round := range 100 {
		for i := range 4 {
			k.deliver(frame(round+i, 60+i))
		}
		// Receive a burst of three frames, then the fourth.
		for i, want := range []int{3, 1, 0} {
			if n := s.Receive(burst); n != want {
				t.Fatalf("round %d, call %d: %d frames, want %d", round, i, n, want)
			}
			for j := range want {
				if !bytes.Equal(burst[j].Data, frame(round+3*i+j, 60+3*i+j)) {
					t.Fatalf("round %d: frame %d is %x", round, 3*i+j, burst[j].Data)
				}
			}
		}
		if n := k.fill.available(); n != 2 {
			t.Fatalf("%d chunks in the fill ring while four are borrowed", n)
		}
		s.Release()
		if n := k.fill.available(); n != 6 {
			t.Fatalf("%d chunks in the fill ring after Release, want 6", n)
		}
	}
}

// TestReceiveLies puts descriptors into the RX ring that are not inside a chunk for receiving.
func TestReceiveLies(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 16, TxFrames: 4})
	rx := s.rxSize()
	lies := []unix.XDPDesc{
		{Addr: rx, Len: 1},
		{Addr: s.size(), Len: 1},
		{Addr: 1<<64 - 1, Len: 2},
		{Addr: 1 << 63, Len: 60},
		{Addr: 0, Len: 1<<32 - 1},
		{Addr: rx - 10, Len: 11},
		{Addr: 2000, Len: 49},
	}
	for _, desc := range lies {
		k.lie(desc)
	}
	k.deliver(frame(7, 60))
	burst := make([]Received, 16)
	if n := s.Receive(burst); n != 1 || !bytes.Equal(burst[0].Data, frame(7, 60)) {
		t.Errorf("got %d frames, want only the valid one", n)
	}
	if n := s.malformed.Load(); n != uint64(len(lies)) {
		t.Errorf("%d counted as malformed, want %d", n, len(lies))
	}
}

// TestReceiveMoreThanThereIs has the kernel deliver one chunk repeatedly.
func TestReceiveMoreThanThereIs(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 4, RxFrames: 4})
	burst := make([]Received, 8)
	for range 3 {
		for range 4 {
			k.lie(unix.XDPDesc{Addr: 256, Len: 60})
		}
		s.Receive(burst)
	}
	if len(s.borrowed) != 4 {
		t.Errorf("%d chunks borrowed of 4", len(s.borrowed))
	}
	s.Release()
	if n := k.fill.available(); n != 4 {
		t.Errorf("%d chunks in a fill ring of 4", n)
	}
}

func TestReceiveSplit(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 32, MultiBuffer: true})
	burst := make([]Received, 8)
	for round := range 20 {
		k.deliver(frame(1, 60))
		k.deliver(frame(2, 1792), frame(3, 1792), frame(4, 100))
		k.deliver(frame(5, 1792), frame(6, 1))
		k.deliver(frame(7, 60))
		if n := s.Receive(burst); n != 4 {
			t.Fatalf("round %d: %d frames, want 4", round, n)
		}
		want := [][]byte{
			frame(1, 60),
			bytes.Join([][]byte{frame(2, 1792), frame(3, 1792), frame(4, 100)}, nil),
			append(frame(5, 1792), 6),
			frame(7, 60),
		}
		for i, data := range want {
			if !bytes.Equal(burst[i].Data, data) {
				t.Fatalf("round %d: frame %d of %d bytes is wrong", round, i, len(burst[i].Data))
			}
		}
		s.Release()
		if n := k.fill.available(); n != 64 {
			t.Fatalf("%d chunks in the fill ring after Release, want 64", n)
		}
	}
}

// TestReceiveHalfSplit delivers only the first part of a frame.
func TestReceiveHalfSplit(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 8, MultiBuffer: true})
	burst := make([]Received, 8)
	k.deliver(frame(1, 60))
	first := k.place(frame(2, 1792))
	first.Options = unix.XDP_PKT_CONTD
	k.lie(first)
	if n := s.Receive(burst); n != 1 {
		t.Fatalf("%d frames, want the complete one", n)
	}
	s.Release()
	if n := s.Receive(burst); n != 0 {
		t.Fatalf("%d frames out of half a frame", n)
	}
	k.deliver(frame(3, 10))
	if n := s.Receive(burst); n != 1 || !bytes.Equal(burst[0].Data, append(frame(2, 1792), frame(3, 10)...)) {
		t.Fatalf("%d frames, %d bytes", n, len(burst[0].Data))
	}
}

// TestReceiveManySplit has more split frames than fit into the memory for joined frames.
func TestReceiveManySplit(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 256, MultiBuffer: true})
	const frames = 60
	for i := range frames {
		k.deliver(frame(i, 1792), frame(i, 1792), frame(i, 1792), frame(i, 1000+i))
	}
	burst := make([]Received, 256)
	seen, calls := 0, 0
	for ; seen < frames && calls < frames; calls++ {
		n := s.Receive(burst)
		for _, received := range burst[:n] {
			if !bytes.Equal(received.Data, frame(seen, 3*1792+1000+seen)) {
				t.Fatalf("frame %d of %d bytes is wrong", seen, len(received.Data))
			}
			seen++
		}
		s.Release()
	}
	if seen != frames || calls != 2 {
		t.Errorf("%d frames in %d calls, want %d in 2", seen, calls, frames)
	}
}

func TestReceiveMalformedSplit(t *testing.T) {
	contd := uint32(unix.XDP_PKT_CONTD)
	for name, parts := range map[string][]unix.XDPDesc{
		"second part outside": {{Addr: 0, Len: 100, Options: contd}, {Addr: 1 << 40, Len: 100}},
		"longer than any":     {{Addr: 0, Len: 1<<32 - 1, Options: contd}, {Addr: 2048, Len: 100}},
		"without end": {
			{Addr: 0, Len: 1, Options: contd}, {Addr: 2048, Len: 1, Options: contd},
			{Addr: 4096, Len: 1, Options: contd}, {Addr: 6144, Len: 1, Options: contd},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, k := newFake(t, Config{RxSize: 4, MultiBuffer: true})
			for _, part := range parts {
				k.lie(part)
			}
			burst := make([]Received, 4)
			if n := s.Receive(burst); n != 0 || s.malformed.Load() != 1 {
				t.Errorf("%d frames, %d counted as malformed, want 0 and 1", n, s.malformed.Load())
			}
			s.Release()
			k.deliver(frame(1, 60))
			if n := s.Receive(burst); n != 1 {
				t.Errorf("%d frames afterwards, want 1", n)
			}
		})
	}
}

func TestReceiveSplitWithoutMultiBuffer(t *testing.T) {
	s, k := newFake(t, Config{RxSize: 4})
	k.deliver(frame(1, 100), frame(2, 100))
	if n := s.Receive(make([]Received, 4)); n != 0 || s.malformed.Load() != 1 {
		t.Errorf("%d frames, %d malformed", n, s.malformed.Load())
	}
}

// BenchmarkReceive passes one frame through Receive and Release, in bursts of 64.
func BenchmarkReceive(b *testing.B) {
	for _, length := range []int{64, 1024} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			s, k := newFake(b, Config{})
			burst := make([]Received, 64)
			for left := b.N; left > 0; left -= len(burst) {
				for range burst {
					k.rx.put(unix.XDPDesc{Addr: k.fill.at(0) + 256, Len: uint32(length)})
					k.fill.next++
				}
				k.rx.publish()
				if n := s.Receive(burst); n != len(burst) {
					b.Fatalf("%d frames", n)
				}
				s.Release()
			}
		})
	}
}
