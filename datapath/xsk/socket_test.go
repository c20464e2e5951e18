// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

// TestBothWays sends many times more frames than its small rings have entries, in bursts that need more than one kick.
func TestBothWays(t *testing.T) {
	hosts := labtest.Pair(t)
	config := Config{RxSize: 128, RxFrames: 200, TxFrames: 100}
	a, b := mustOpen(t, hosts.A, config), mustOpen(t, hosts.B, config)
	steer(t, hosts.A, a)
	steer(t, hosts.B, b)
	const burst, rounds = 100, 100
	for i := range uint32(rounds) {
		for _, way := range []struct{ from, to *Socket }{{a, b}, {b, a}} {
			sendAll(t, way.from, i*burst, (i+1)*burst, 200)
			collect(t, way.to, burst, inOrder(t, i*burst, 200))
		}
	}
	for _, s := range []*Socket{a, b} {
		if stats, err := s.Stats(); err != nil || stats.RxDropped+stats.RxRingFull+stats.Malformed != 0 {
			t.Errorf("%+v, %v", stats, err)
		}
		if info := s.Attached(); info.ZeroCopy || info.MultiBuffer || info.MaxUnsplit != 1792 {
			t.Errorf("%+v", info)
		}
	}
}

// TestOneFlushIsManyKicks expects one call to send all of a long burst.
func TestOneFlushIsManyKicks(t *testing.T) {
	hosts := labtest.Pair(t)
	a := mustOpen(t, hosts.A, Config{TxFrames: 200})
	for range 200 {
		r := mustReserve(t, a)
		testFrame(r.Bytes()[:60], 0)
		a.Submit(r, 60)
	}
	if n := a.Unsent(); n != 200 {
		t.Errorf("%d unsent before Flush, want 200", n)
	}
	if n := a.Flush(); n != 0 || a.Err() != nil {
		t.Errorf("%d unsent after one Flush, %v", n, a.Err())
	}
}

func TestFullFrames(t *testing.T) {
	for _, size := range []uint32{2048, 4096} {
		hosts := labtest.Pair(t, lab.WithMTU(3400))
		config := Config{ChunkSize: size}
		a, b := mustOpen(t, hosts.A, config), mustOpen(t, hosts.B, config)
		steer(t, hosts.A, a)
		steer(t, hosts.B, b)
		length := min(3400+14, b.Attached().MaxUnsplit, int(size))
		sendAll(t, a, 0, 10, length)
		collect(t, b, 10, inOrder(t, 0, length))
	}
}

// TestMultiBuffer sends frames of 9,014 bytes, five chunks each when sent and six when received.
func TestMultiBuffer(t *testing.T) {
	const length, burst = 9014, 12
	hosts := labtest.Pair(t, lab.WithMTU(9000))
	if !multiBuffer(t) {
		return // TestMultiBufferSupported expects the error instead
	}
	config := Config{RxSize: 256, TxFrames: burst, MaxFrame: length, MultiBuffer: true}
	a, b := mustOpen(t, hosts.A, config), mustOpen(t, hosts.B, config)
	steer(t, hosts.A, a)
	steer(t, hosts.B, b)
	for i := range uint32(50) {
		sendAll(t, a, i*burst, (i+1)*burst, length)
		collect(t, b, burst, inOrder(t, i*burst, length))
		sendAll(t, b, i, i+1, 60)
		collect(t, a, 1, inOrder(t, i, 60))
	}
	if !a.Attached().MultiBuffer {
		t.Error("Attached does not report multi-buffer")
	}
}

// TestLongFrameWithoutMultiBuffer expects the frame to be lost, and counted.
func TestLongFrameWithoutMultiBuffer(t *testing.T) {
	hosts := labtest.Pair(t, lab.WithMTU(9000))
	if !multiBuffer(t) {
		return
	}
	a := mustOpen(t, hosts.A, Config{MaxFrame: 4000, MultiBuffer: true})
	b := mustOpen(t, hosts.B, Config{})
	steer(t, hosts.B, b)
	sendAll(t, a, 0, 1, 4000)
	sendAll(t, a, 1, 2, 60)
	collect(t, b, 1, inOrder(t, 1, 60))
	if stats, err := b.Stats(); err != nil || stats.RxDropped != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
}

func TestQueues(t *testing.T) {
	const queues = 3
	hosts := labtest.Pair(t, lab.WithQueues(queues))
	var a, b []*Socket
	for i := range queues {
		a = append(a, mustOpen(t, hosts.A, Config{Queue: i, RxSize: 64, TxFrames: 64}))
		b = append(b, mustOpen(t, hosts.B, Config{Queue: i, RxSize: 64, TxFrames: 64}))
	}
	steer(t, hosts.B, b...)
	for i := range uint32(queues) {
		sendAll(t, a[i], 100*i, 100*i+40, 60)
	}
	for i := range uint32(queues) {
		collect(t, b[i], 40, inOrder(t, 100*i, 60))
	}
}

// TestEveryFrameIsCounted exhausts the fill ring, then the RX ring.
func TestEveryFrameIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		config Config
		want   func(Statistics) bool
	}{
		"fill ring": {Config{RxSize: 64, RxFrames: 64}, func(s Statistics) bool {
			return s.RxDropped == 136 && s.RxFillRingEmpty == 136 && s.RxRingFull == 0
		}},
		"RX ring": {Config{RxSize: 64, RxFrames: 512}, func(s Statistics) bool {
			return s.RxDropped == 0 && s.RxFillRingEmpty == 0 && s.RxRingFull == 136
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := labtest.Pair(t)
			a, b := mustOpen(t, hosts.A, Config{}), mustOpen(t, hosts.B, test.config)
			steer(t, hosts.B, b)
			sendAll(t, a, 0, 200, 60)
			var stats Statistics
			for deadline := time.Now().Add(within); !test.want(stats) && time.Now().Before(deadline); {
				var err error
				if stats, err = b.Stats(); err != nil {
					t.Fatal(err)
				}
			}
			if !test.want(stats) {
				t.Errorf("%+v", stats)
			}
			collect(t, b, 64, inOrder(t, 0, 60))
			sendAll(t, a, 200, 201, 60)
			collect(t, b, 1, inOrder(t, 200, 60))
		})
	}
}

func TestBusyPoll(t *testing.T) {
	hosts := labtest.Pair(t)
	config := Config{BusyPoll: 20 * time.Microsecond, BusyPollBudget: 64}
	a, b := mustOpen(t, hosts.A, config), mustOpen(t, hosts.B, config)
	steer(t, hosts.B, b)
	for option, want := range map[int]int{unix.SO_PREFER_BUSY_POLL: 1, unix.SO_BUSY_POLL: 20} {
		got, err := unix.GetsockoptInt(b.FD(), unix.SOL_SOCKET, option)
		if err != nil || got != want {
			t.Errorf("socket option %d is %d, want %d; %v", option, got, want, err)
		}
	}
	sendAll(t, a, 0, 200, 60)
	collect(t, b, 200, inOrder(t, 0, 60))
	if b.Err() != nil {
		t.Error(b.Err())
	}
}

func TestPoll(t *testing.T) {
	hosts := labtest.Pair(t)
	a, b := mustOpen(t, hosts.A, Config{}), mustOpen(t, hosts.B, Config{})
	steer(t, hosts.B, b)
	sendAll(t, a, 0, 1, 60)
	if !waittest.Readable(t, b.FD(), within) {
		t.Fatal("no frame arrived")
	}
	collect(t, b, 1, inOrder(t, 0, 60))
}

// TestLinkDownAndGone expects frames to wait while the link is down.
func TestLinkDownAndGone(t *testing.T) {
	hosts := labtest.Pair(t)
	a, b := mustOpen(t, hosts.A, Config{}), mustOpen(t, hosts.B, Config{})
	steer(t, hosts.B, b)
	eth0, err := hosts.A.Netlink().LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := hosts.A.Netlink().LinkSetDown(eth0); err != nil {
		t.Fatal(err)
	}
	r := mustReserve(t, a)
	testFrame(r.Bytes()[:60], 5)
	a.Submit(r, 60)
	if n := a.Flush(); n != 1 || !errors.Is(a.Err(), ErrDown) || !errors.Is(a.Err(), unix.ENETDOWN) {
		t.Errorf("link down: %d unsent, %v", n, a.Err())
	}
	if err := hosts.A.Netlink().LinkSetUp(eth0); err != nil {
		t.Fatal(err)
	}
	flushAll(t, a)
	if a.Err() != nil {
		t.Errorf("link up: %v", a.Err())
	}
	if err := hosts.A.Netlink().LinkDel(eth0); err != nil {
		t.Fatal(err)
	}
	a.Submit(mustReserve(t, a), 60)
	if n := a.Flush(); n != 1 || !errors.Is(a.Err(), ErrGone) {
		t.Errorf("link gone: %d unsent, %v", n, a.Err())
	}
}

func TestReopenAtOnce(t *testing.T) {
	hosts := labtest.Pair(t)
	for range 10 {
		s, err := openIn(t, hosts.A, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClosed(t *testing.T) {
	hosts := labtest.Pair(t)
	s := mustOpen(t, hosts.A, Config{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Stats(); !errors.Is(err, ErrClosed) {
		t.Errorf("Stats after Close: %v", err)
	}
	mustPanic(t, "Receive after Close", func() { s.Receive(make([]Received, 1)) })
	mustPanic(t, "Reserve after Close", func() { s.Reserve() })
	mustPanic(t, "Flush after Close", func() { s.Flush() })
}

// TestStatsWhileClosing has the race detector check the method that other goroutines may call.
func TestStatsWhileClosing(t *testing.T) {
	hosts := labtest.Pair(t)
	s := mustOpen(t, hosts.A, Config{})
	reading, done := make(chan struct{}), make(chan error)
	go func() {
		_, err := s.Stats()
		close(reading)
		for err == nil {
			_, err = s.Stats()
		}
		done <- err
	}()
	<-reading
	sendAll(t, s, 0, 100, 60)
	s.Receive(make([]Received, 1))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func multiBuffer(t *testing.T) bool {
	t.Helper()
	ok, err := MultiBufferSupported()
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// BenchmarkVeth sends one frame from a socket to another, in bursts of 64, on one thread.
func BenchmarkVeth(b *testing.B) {
	hosts := labtest.Pair(b)
	from, to := mustOpen(b, hosts.A, Config{}), mustOpen(b, hosts.B, Config{})
	steer(b, hosts.B, to)
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= 64 {
		sendAll(b, from, 0, 64, 90)
		collect(b, to, 64, func([]byte) {})
	}
}
