// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"log/slog"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// If a driver reports the number of queues, a queue that cannot be bound is an error. Otherwise there may be fewer
// queues than the maximum.
func TestQueueThatIsNotThere(t *testing.T) {
	hosts := labtest.Pair(t)
	for _, guessed := range []bool{false, true} {
		b := &builder{name: "eth0", config: Config{Log: slog.New(slog.DiscardHandler)}, multiBuffer: xsk.MultiBufferSupported, maxMTU: wire.MTU1024}
		b.link, _ = hosts.A.Netlink().LinkByName("eth0")
		b.base = b.link
		b.queues = queues{count: 2, guessed: guessed}
		check(t, hosts.A.Do(func() error {
			if err := b.loadProgram(); err != nil {
				return err
			}
			err := b.openSockets()
			if guessed && (err != nil || len(b.sockets) != 1) {
				t.Errorf("guessed: %d sockets, %v", len(b.sockets), err)
			}
			if !guessed {
				refused(t, err, unix.EINVAL, "queue 1 of 2")
			}
			return b.undo()
		}))
	}
}

// The memory is limited, whatever the number of queues, unless a size was requested.
func TestFramesFor(t *testing.T) {
	for _, row := range []struct {
		queues             int
		chunk, asked, want uint32
	}{
		{1, 2048, 0, 2048}, {16, 2048, 0, 2048}, {17, 2048, 0, 1024}, {64, 2048, 0, 512}, {65, 2048, 0, 256},
		{100, 2048, 0, 256}, {512, 2048, 0, 64}, {1024, 2048, 0, 64}, {64, 4096, 0, 256}, {8, 4096, 0, 2048},
		{64, 2048, 4096, 4096}, {1, 2048, 64, 64},
	} {
		if got := framesFor(row.queues, row.chunk, row.asked); got != row.want {
			t.Errorf("%d queues, chunks of %d, asked for %d: %d frames, want %d", row.queues, row.chunk, row.asked, got, row.want)
		}
	}
}

// The memory that the sockets lock is known before they are opened.
func TestLockedBytes(t *testing.T) {
	for _, row := range []struct {
		queues, workers int
		mtu             wire.MTU
		want            uint64
	}{
		{1, 1, wire.MTU1024, 12 << 20},
		{64, 1, wire.MTU1024, 128<<20 + 4<<20 + 63*16*2048},
		{64, 4, wire.MTU1024, 128<<20 + 4*4<<20 + 60*16*2048},
		{1, 1, wire.MTU4096, 2*2048*4096 + 2*2048*4096},
	} {
		b := &builder{link: &netlink.GenericLink{}, base: &netlink.GenericLink{}, maxMTU: row.mtu, queues: queues{count: row.queues}, workers: row.workers}
		if got := b.lockedBytes(); got != row.want {
			t.Errorf("%d queues, %d workers, %v: %d bytes, want %d", row.queues, row.workers, row.mtu, got, row.want)
		}
	}
}
