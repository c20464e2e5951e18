package hca

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/verbs"
	"github.com/safchain/ethtool"
)

// maxQueues is how many receive queues an interface may have. Each needs a socket, with memory and a
// descriptor.
const maxQueues = 1024

const (
	// receiveBudget limits the memory of all sockets for receiving, in bytes, but each ring has at
	// least fewestFrames: with 1024 queues that is 256 MiB.
	receiveBudget = 128 << 20
	mostFrames    = 2048 // of a ring
	fewestFrames  = 64
	// idleFrames is the size of the send rings of all sockets but the first, which alone sends.
	idleFrames = 16
)

// queues are the receive queues of an interface. Each needs a socket, else its frames are lost.
type queues struct {
	count int
	// guessed says that the driver does not give the number in use; it is at most count.
	guessed bool
}

// countQueues finds how many receive queues the interface uses now (ethtool -l).
func (b *builder) countQueues() error {
	attrs := b.base.Attrs()
	b.queues = queues{count: max(attrs.NumRxQueues, 1), guessed: true}
	if inUse := queuesInUse(attrs.Name); inUse > 0 {
		b.queues = queues{count: inUse}
	}
	if b.queues.count > maxQueues {
		return fmt.Errorf("%w: %s has %d receive queues, and roced covers %d: packets on the others would be lost; ethtool -L %[2]s combined %[4]d (or rx %[4]d)",
			verbs.ErrUnsupported, attrs.Name, b.queues.count, maxQueues)
	}
	return nil
}

// queuesInUse asks the driver for the number of queues in use; 0 if it does not give it.
func queuesInUse(name string) int {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return 0
	}
	defer tool.Close()
	channels, err := tool.GetChannels(name)
	if err != nil {
		return 0
	}
	return int(channels.RxCount + channels.CombinedCount)
}

// openSockets opens a socket for each receive queue.
func (b *builder) openSockets() error {
	for queue := range b.queues.count {
		socket, err := xsk.Open(b.socketConfig(queue))
		if errors.Is(err, xsk.ErrNoQueue) && queue > 0 && b.queues.guessed {
			return nil // there are fewer, and all of them have a socket
		}
		if err != nil {
			return fmt.Errorf("queue %d of %d: %w", queue, b.queues.count, err)
		}
		b.sockets = append(b.sockets, socket)
		if err := b.steering.SetRing(queue, socket.FD()); err != nil {
			return fmt.Errorf("queue %d of %d: %w", queue, b.queues.count, err)
		}
	}
	return nil
}

// socketConfig makes chunks as small as the largest frame allows, so that more of them fit the
// processor's cache.
func (b *builder) socketConfig(queue int) xsk.Config {
	frame := uint32(wire.MaxHeaders + b.maxMTU.Bytes() + wire.MaxTrailer)
	c := xsk.Config{
		Interface: b.base.Attrs().Index, Queue: queue, Mode: b.modes.socket,
		ChunkSize: 2048, MaxFrame: frame,
		BusyPoll: b.options.tuning.BusyPoll, BusyPollBudget: b.options.tuning.BusyPollBudget,
	}
	const reserved = 256 // the kernel keeps this much of a chunk when it receives
	if frame > c.ChunkSize-reserved {
		c.ChunkSize = 4096
	}
	c.MultiBuffer = frame > c.ChunkSize-reserved
	c.RxSize = framesFor(b.queues.count, c.ChunkSize, b.options.frames)
	c.TxFrames = idleFrames
	if queue == 0 {
		c.TxFrames = cmp.Or(b.options.frames, mostFrames)
	}
	return c
}

// framesFor is the size of each queue's ring, in frames: what was asked for, or else the largest that
// keeps all of them within the budget. A ring has chunks for twice as many frames.
func framesFor(queues int, chunk, asked uint32) uint32 {
	if asked != 0 {
		return asked
	}
	each := uint32(receiveBudget / queues / int(2*chunk))
	return min(max(uint32(1)<<(bits.Len32(each|1)-1), fewestFrames), mostFrames)
}

// lockedBytes is the memory that the sockets lock.
func (b *builder) lockedBytes() (sum uint64) {
	for queue := range b.queues.count {
		c := b.socketConfig(queue)
		perFrame := uint64((c.MaxFrame + c.ChunkSize - 1) / c.ChunkSize)
		sum += (2*uint64(c.RxSize) + perFrame*uint64(c.TxFrames)) * uint64(c.ChunkSize)
	}
	return sum
}
