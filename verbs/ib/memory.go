// SPDX-License-Identifier: Apache-2.0

package ib

// DMAAddr is an address of a session's memory for use with the local DMA key (dma_addr_t). It contains the region and
// the access of the card. Adding an offset stays within the memory, and pages begin at the beginning of the memory:
//
//	direction 2 | index of the region's key 24 | offset 38
type DMAAddr uint64

const (
	dmaOffsetBits = 38
	dmaIndexBits  = 24

	// LocalDMALKey is the local DMA key of every PD (local_dma_lkey). No region has a key below 256.
	LocalDMALKey LKey = 0x80
)

// Allows reports whether the card may write memory, or read it.
func (d DMADirection) Allows(write bool) bool {
	return d == DMABidirectional || d == DMAFromDevice && write || d == DMAToDevice && !write
}

// NewDMAAddr returns the address of the byte at an offset in a region's memory.
func NewDMAAddr(key LKey, offset uint64, d DMADirection) DMAAddr {
	return DMAAddr(uint64(d)<<(dmaIndexBits+dmaOffsetBits) | uint64(key>>8)<<dmaOffsetBits | offset&(1<<dmaOffsetBits-1))
}

// Direction returns the access of the card.
func (a DMAAddr) Direction() DMADirection { return DMADirection(a >> (dmaIndexBits + dmaOffsetBits)) }

// Key returns a key of the region, with the low 8 bits 0.
func (a DMAAddr) Key() LKey { return LKey(a>>dmaOffsetBits) << 8 }

// Offset returns the offset in the region's memory. It does not reveal the key to peers.
func (a DMAAddr) Offset() uint64 { return uint64(a) & (1<<dmaOffsetBits - 1) }

// LKey identifies a memory region in a scatter/gather entry.
type LKey uint32

// RKey identifies a memory region or window to a peer.
type RKey uint32

// SGE is a scatter/gather entry: a piece of a memory region.
type SGE struct {
	Addr   uint64 // address in the region, which begins at its base: 0 unless it was registered with one
	Length uint32 // bytes
	LKey   LKey
}
