// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxEntries keeps the distance between two ring indices below 2^32.
	maxEntries = 1 << 31
	// maxChunksPerFrame is the maximum number of fragments of an skb (MAX_SKB_FRAGS).
	maxChunksPerFrame = 17
)

// layout holds the sizes of the parts of the UMEM and of the rings, which are computed from a Config. The chunks for
// receiving come first in the UMEM.
type layout struct {
	chunkSize      uint64 // size of a chunk in bytes, a power of two
	chunkShift     uint8  // base-2 logarithm of chunkSize
	rxChunks       uint32 // number of chunks for receiving
	txSlots        uint32 // number of slots for sending
	chunksPerFrame uint32 // number of chunks of a slot
	maxFrame       uint64 // maximum length of a frame to send, in bytes

	rxEntries, fillEntries uint32
	txEntries              uint32 // number of entries of the TX ring and of the completion ring
}

// rxSize returns the size of the part for receiving, in bytes. The part for sending begins there.
func (l *layout) rxSize() uint64 { return uint64(l.rxChunks) * l.chunkSize }

func (l *layout) slotSize() uint64 { return uint64(l.chunksPerFrame) * l.chunkSize }

func (l *layout) size() uint64 { return l.rxSize() + uint64(l.txSlots)*l.slotSize() }

// layout checks the configuration, which must include the defaults, and computes its layout.
func (c Config) layout() (layout, error) {
	if err := c.check(); err != nil {
		return layout{}, err
	}
	l := layout{
		chunkSize:      uint64(c.ChunkSize),
		chunkShift:     uint8(bits.TrailingZeros32(c.ChunkSize)),
		rxChunks:       c.RxFrames,
		txSlots:        c.TxFrames,
		chunksPerFrame: uint32((uint64(c.MaxFrame) + uint64(c.ChunkSize) - 1) / uint64(c.ChunkSize)),
		maxFrame:       uint64(c.MaxFrame),
		rxEntries:      c.RxSize,
		fillEntries:    ceilPowerOfTwo(c.RxFrames),
	}
	if l.chunksPerFrame > maxChunksPerFrame {
		return l, configError("MaxFrame %d needs %d chunks of %d bytes, the maximum is %d",
			c.MaxFrame, l.chunksPerFrame, c.ChunkSize, maxChunksPerFrame)
	}
	// The TX and completion rings have an entry for every chunk, so that they are never full.
	entries := uint64(l.txSlots) * uint64(l.chunksPerFrame)
	if entries > maxEntries {
		return l, configError("TxFrames %d of %d chunks each exceeds %d chunks",
			c.TxFrames, l.chunksPerFrame, uint64(maxEntries))
	}
	l.txEntries = ceilPowerOfTwo(uint32(entries))
	if l.size() > math.MaxInt {
		return l, configError("RxFrames %d and TxFrames %d do not fit the address space", c.RxFrames, c.TxFrames)
	}
	return l, nil
}

func (c Config) check() error {
	switch {
	case c.Interface <= 0 || c.Interface > math.MaxInt32:
		return configError("Interface %d is not a valid interface index", c.Interface)
	case c.Queue < 0 || c.Queue > math.MaxInt32:
		return configError("Queue %d is not a valid queue number", c.Queue)
	case c.Mode < Auto || c.Mode > ZeroCopy:
		return configError("Mode %d is invalid", c.Mode)
	case c.RxSize > maxEntries || bits.OnesCount32(c.RxSize) != 1:
		return configError("RxSize %d is not a power of two", c.RxSize)
	case c.RxFrames > maxEntries:
		return configError("RxFrames %d exceeds %d", c.RxFrames, uint32(maxEntries))
	case c.RxFrames < c.RxSize:
		return configError("RxFrames %d is less than RxSize %d: the RX ring would never be full", c.RxFrames, c.RxSize)
	case c.ChunkSize != 2048 && c.ChunkSize != 4096:
		return configError("ChunkSize %d must be 2048 or 4096", c.ChunkSize)
	case c.MaxFrame > c.ChunkSize && !c.MultiBuffer:
		return configError("MaxFrame %d exceeds ChunkSize %d, which requires MultiBuffer", c.MaxFrame, c.ChunkSize)
	}
	return c.checkBusyPoll()
}

func (c Config) checkBusyPoll() error {
	switch {
	case c.BusyPoll < 0 || c.BusyPoll > 0 && c.BusyPoll < time.Microsecond ||
		c.BusyPoll.Microseconds() > math.MaxInt32:
		return configError("BusyPoll %v must be at least 1 µs and fit 31 bits in microseconds", c.BusyPoll)
	case c.BusyPollBudget < 0 || c.BusyPollBudget > math.MaxUint16:
		return configError("BusyPollBudget %d must be between 0 and %d", c.BusyPollBudget, math.MaxUint16)
	case c.BusyPollBudget > 0 && c.BusyPoll == 0:
		return configError("BusyPollBudget %d requires BusyPoll", c.BusyPollBudget)
	}
	return nil
}

// ceilPowerOfTwo returns the smallest power of two that is not less than n, for n from 1 to 2^31.
func ceilPowerOfTwo(n uint32) uint32 { return 1 << bits.Len32(n-1) }

func configError(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), unix.EINVAL)
}
