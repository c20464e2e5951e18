// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"github.com/roced/roced/verbs/ib"
)

// LKey identifies a memory region in a scatter/gather entry.
type LKey = ib.LKey

// RKey identifies a memory region or window to a peer. A region's RKey has the value of its LKey.
type RKey = ib.RKey

// keyMask is the part of a key that its owner may change; the rest is assigned by the card.
const keyMask = 0xFF

// IncRKey increments the low 8 bits of a key, which wrap around, and keeps the others (ib_inc_rkey).
func IncRKey(key RKey) RKey { return key&^keyMask | (key+1)&keyMask }

// LKey returns the region's local key.
func (m *MR) LKey() LKey {
	if m == nil {
		return 0
	}
	return LKey(m.shown.Load())
}

// cardKey returns the key that identifies the region to the card.
func (m *MR) cardKey() LKey {
	if m.fast != nil {
		return m.LKey()
	}
	return m.lkey
}

// RKey returns the region's remote key.
func (m *MR) RKey() RKey {
	if m == nil {
		return 0
	}
	return RKey(m.shown.Load())
}
