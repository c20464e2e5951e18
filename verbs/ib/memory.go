package ib

// DMAAddr is an address of a session's memory, that the local DMA key goes with (dma_addr_t). It says which region's
// memory it is of, and what the card may do there. Addition stays within the memory, and pages begin where the memory
// does:
//
//	direction 2 | index of the region's key 24 | offset 38
type DMAAddr uint64

const (
	dmaOffsetBits = 38
	dmaIndexBits  = 24

	// LocalDMALKey is the local DMA key of every PD (local_dma_lkey). No region has a key below 256.
	LocalDMALKey LKey = 0x80
)

// Allows says whether the card may write memory, or read it.
func (d DMADirection) Allows(write bool) bool {
	return d == DMABidirectional || d == DMAFromDevice && write || d == DMAToDevice && !write
}

// NewDMAAddr is that of the byte at an offset of a region's memory.
func NewDMAAddr(key LKey, offset uint64, d DMADirection) DMAAddr {
	return DMAAddr(uint64(d)<<(dmaIndexBits+dmaOffsetBits) | uint64(key>>8)<<dmaOffsetBits | offset&(1<<dmaOffsetBits-1))
}

// Direction says what the card may do there.
func (a DMAAddr) Direction() DMADirection { return DMADirection(a >> (dmaIndexBits + dmaOffsetBits)) }

// Key is one of the region's; its low 8 bits are 0.
func (a DMAAddr) Key() LKey { return LKey(a>>dmaOffsetBits) << 8 }

// Offset is the byte's in the region's memory. Peers may know it: it says nothing of the key.
func (a DMAAddr) Offset() uint64 { return uint64(a) & (1<<dmaOffsetBits - 1) }

// LKey names a memory region in a scatter/gather entry.
type LKey uint32

// RKey names a memory region or window to a peer.
type RKey uint32

// SGE is a scatter/gather entry: a piece of a memory region.
type SGE struct {
	Addr   uint64 // of a byte of the region; its first one has the region's base, 0 unless it was registered with one
	Length uint32 // bytes
	LKey   LKey
}
