package verbs

import (
	"github.com/roced/roced/verbs/ib"
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
