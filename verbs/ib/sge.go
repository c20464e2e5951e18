package ib

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
