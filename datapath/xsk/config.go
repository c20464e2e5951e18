// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"cmp"
	"time"
)

// Mode is the way in which frames are transferred between the driver and the UMEM.
type Mode int

const (
	Auto     Mode = iota // zero-copy if the driver supports it, else copy
	Copy                 // the kernel copies each frame
	ZeroCopy             // the NIC reads and writes the UMEM, or Open fails with ErrZeroCopy
)

// Config configures a socket. Only Interface is required; zero in another field means its default. The sizes of the
// fill, TX and completion rings follow from RxFrames and TxFrames.
type Config struct {
	Interface int // index of the interface, in the network namespace of the caller's thread
	Queue     int // queue of the interface, from 0
	Mode      Mode

	// RxSize is the number of RX ring entries, a power of two. Default 2048.
	RxSize uint32
	// RxFrames is the number of chunks for receiving. In zero-copy mode they also fill the NIC's own ring (ethtool -g),
	// so it should be the size of that ring plus RxSize. Default twice RxSize.
	RxFrames uint32
	// TxFrames is the number of frames that can be reserved and in flight. Default 2048.
	TxFrames uint32
	// ChunkSize is 2048 or 4096 bytes. On receive the kernel uses 256 of them as headroom.
	// Default 2048.
	ChunkSize uint32
	// MaxFrame is the maximum length of a frame to send, in bytes, including the Ethernet header. More than ChunkSize
	// requires MultiBuffer. Default ChunkSize.
	MaxFrame uint32
	// MultiBuffer allows frames of several chunks, sent and received. It requires Linux 6.6 and, for receiving, an XDP
	// program loaded with BPF_F_XDP_HAS_FRAGS. Some drivers support zero-copy only without it.
	MultiBuffer bool

	// BusyPoll is the time for which a system call polls the driver (SO_BUSY_POLL, rounded down to microseconds). It
	// also makes the kernel prefer polling to interrupts (SO_PREFER_BUSY_POLL). It requires CAP_NET_ADMIN. Zero
	// disables busy polling.
	BusyPoll time.Duration
	// BusyPollBudget is the maximum number of frames per poll (SO_BUSY_POLL_BUDGET); zero: the kernel's default. It
	// requires BusyPoll.
	BusyPollBudget int
}

const (
	defaultRxSize    = 2048
	defaultTxFrames  = 2048
	defaultChunkSize = 2048
)

func (c Config) withDefaults() Config {
	c.RxSize = cmp.Or(c.RxSize, defaultRxSize)
	c.RxFrames = cmp.Or(c.RxFrames, 2*c.RxSize)
	c.TxFrames = cmp.Or(c.TxFrames, defaultTxFrames)
	c.ChunkSize = cmp.Or(c.ChunkSize, defaultChunkSize)
	c.MaxFrame = cmp.Or(c.MaxFrame, c.ChunkSize)
	return c
}
