// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/verbs/ib"
)

// A key identifies a memory region or a memory window of a session, for its own program (lkey) and for peers (rkey).
// Peers must not be able to guess keys, so keys are random:
//
//	index, 24 bits, random | low 8 bits: random for a region; chosen by the owner for a window (ib_inc_rkey)
//
// An index is drawn until its low bits are those of a free slot in the table. As the table is at most half full, this
// costs about one bit of randomness, and a look-up needs only one access.

// Table holds the memory regions and windows of a session.
type Table struct {
	slots []keyed // the length is a power of two
	count int     // number of slots in use
}

// keyed is a slot: it holds a region, a window, or neither.
type keyed struct {
	index uint32
	mr    *MR
	mw    *MW
}

func keyIndex(key ib.LKey) uint32 { return uint32(key) >> 8 }

func (k *keyed) free() bool { return k.mr == nil && k.mw == nil }

// slot returns the slot for a key's index; nil if the table is empty.
func (t *Table) slot(key ib.LKey) *keyed {
	if len(t.slots) == 0 {
		return nil
	}
	return &t.slots[keyIndex(key)&uint32(len(t.slots)-1)]
}

// find returns the slot that holds a key's index; nil if there is none.
func (t *Table) find(key ib.LKey) *keyed {
	if k := t.slot(key); k != nil && k.index == keyIndex(key) {
		return k
	}
	return nil
}

// put assigns a region or a window to a key's index. If both are nil, it removes the object.
func (t *Table) put(key ib.LKey, mr *MR, mw *MW) {
	for t.slot(key) == nil || !t.slot(key).free() && t.slot(key).index != keyIndex(key) {
		t.grow()
	}
	k := t.slot(key)
	before := k.free()
	*k = keyed{keyIndex(key), mr, mw}
	switch after := k.free(); {
	case before && !after:
		t.count++
	case after && !before:
		t.count--
	}
}

// grow doubles the size of the table. Keys in different slots stay in different slots.
func (t *Table) grow() {
	old := t.slots
	t.slots = make([]keyed, max(8, 2*len(old)))
	for _, k := range old {
		if !k.free() {
			t.slots[k.index&uint32(len(t.slots)-1)] = k
		}
	}
}

// DrawKey draws a key for a region or a window from random. The caller must pass it to SetMR or SetMW before it draws
// another key.
func (t *Table) DrawKey(random func() uint32) ib.LKey {
	if 2*(t.count+1) > len(t.slots) {
		t.grow()
	}
	for {
		if key := ib.LKey(random()); keyIndex(key) != 0 && t.slot(key).free() {
			return key
		}
	}
}

// SetMR assigns a region to its LKey.
func (t *Table) SetMR(mr *MR) { t.put(mr.LKey, mr, nil) }

// SetMW assigns a memory window, which is not bound yet, to a key's index.
func (t *Table) SetMW(key ib.RKey, mw *MW) {
	mw.key = key
	t.put(ib.LKey(key), nil, mw)
}

// ClearKey removes the region or the window of a key. A window is unbound.
func (t *Table) ClearKey(key ib.LKey) {
	if k := t.find(key); k != nil {
		if k.mw != nil {
			k.mw.unbind()
		}
		if k.mr != nil && k.mr.fast != nil {
			k.mr.fast.forget()
		}
		t.put(key, nil, nil)
	}
}

// region returns the memory region of a key; nil if the key has none.
func (t *Table) region(key ib.LKey) *MR {
	if k := t.find(key); k != nil && k.mr != nil && k.mr.LKey == key {
		return k.mr
	}
	return nil
}

// window returns the window of a key, whose low 8 bits are ignored; nil if the key has none.
func (t *Table) window(key ib.RKey) *MW {
	if k := t.find(ib.LKey(key)); k != nil {
		return k.mw
	}
	return nil
}
