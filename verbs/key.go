package verbs

import (
	"github.com/roced/roced/ib"
)

// LKey names a memory region in a scatter/gather entry.
type LKey = ib.LKey

// RKey names a memory region or window to a peer. A region's has the LKey's value.
type RKey = ib.RKey

// keyMask is the part of a key that its owner may change; the rest is the card's.
const keyMask = 0xFF

// IncRKey counts up the low 8 bits of a key, which wrap round, and leaves the others (ib_inc_rkey).
func IncRKey(key RKey) RKey { return key&^keyMask | (key+1)&keyMask }

// LKey is the region's local key.
func (m *MR) LKey() LKey {
	if m == nil {
		return 0
	}
	return LKey(m.shown.Load())
}

// cardKey is the key by which the card knows the region.
func (m *MR) cardKey() LKey {
	if m.fast != nil {
		return m.LKey()
	}
	return m.lkey
}

// RKey is the region's remote key.
func (m *MR) RKey() RKey {
	if m == nil {
		return 0
	}
	return RKey(m.shown.Load())
}

// UpdateFastRegKey replaces the low 8 bits of the keys that LKey and RKey give
// (ib_update_fast_reg_key). As in the kernel it changes this object only. The card learns the new key of a fast
// region from the request that registers it; see RegMR. A region that is not fast keeps its key on the
// card, so that requests which carry the new one fail (WCLocProtErr), and SGEs that SGE makes carry the card's.
func (m *MR) UpdateFastRegKey(key uint8) {
	if m == nil {
		return
	}
	m.shown.Store(uint32(m.lkey)&^keyMask | uint32(key))
}
