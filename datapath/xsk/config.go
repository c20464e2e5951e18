package xsk

import (
	"cmp"
	"time"
)

// Mode says how frames get from the driver into the UMEM.
type Mode int

const (
	Auto     Mode = iota // zero-copy if the driver has it, else copy
	Copy                 // the kernel copies each frame
	ZeroCopy             // the card reads and writes the UMEM, or Open fails with ErrZeroCopy
)

// Config says what to open. Only Interface must be set: zero elsewhere means the
// default. The fill, TX and completion rings follow from it.
type Config struct {
	Interface int // index of the interface, in the network namespace of the caller's thread
	Queue     int // queue of the interface, from 0
	Mode      Mode

	// RxSize is the number of RX ring entries, a power of two. Default 2048.
	RxSize uint32
	// RxFrames is the number of chunks for receiving. In zero-copy the card's own
	// ring (ethtool -g) is filled from them too, so it should be that ring and
	// RxSize together. Default twice RxSize.
	RxFrames uint32
	// TxFrames is the number of frames that can be reserved and in flight. Default 2048.
	TxFrames uint32
	// ChunkSize is 2048 or 4096 bytes. The kernel keeps 256 of them for itself when it
	// receives. Default 2048.
	ChunkSize uint32
	// MaxFrame is the longest frame that will be sent, in bytes from the Ethernet
	// header on. More than a chunk needs MultiBuffer. Default ChunkSize.
	MaxFrame uint32
	// MultiBuffer lets frames span several chunks, both ways. It needs Linux 6.6, and
	// for receiving an XDP program that is loaded with BPF_F_XDP_HAS_FRAGS. A driver
	// that has zero-copy may not have it together with this.
	MultiBuffer bool

	// BusyPoll is for how long the kernel polls the driver when asked (SO_BUSY_POLL,
	// whole microseconds) and also prefers that to interrupts (SO_PREFER_BUSY_POLL).
	// It needs CAP_NET_ADMIN. Zero leaves it off.
	BusyPoll time.Duration
	// BusyPollBudget is the number of frames per poll (SO_BUSY_POLL_BUDGET). Zero
	// leaves it to the kernel. It needs BusyPoll.
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
