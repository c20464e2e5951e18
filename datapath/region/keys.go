// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/verbs/ib"
)

// A key identifies a memory region or a memory window of a session, to its own program (lkey) and to peers (rkey).
// Peers must not be able to guess keys, so a key does not contain its place in the table:
//
//	index, 24 bits, random | low 8 bits: random for a region; chosen by the owner for a window (ib_inc_rkey)
//
// The index is drawn so that its low bits are those of a free slot. In a table that is at most half full this costs one
// bit of 24, and a key is found, or not, with one access.

// Table holds the objects of a session's keys.
type Table struct {
	slots []keyed // a power of two
	count int
}

// keyed is a slot: a region, a window, or free.
type keyed struct {
	index uint32
	mr    *MR
	mw    *MW
}

func keyIndex(key ib.LKey) uint32 { return uint32(key) >> 8 }

func (k *keyed) free() bool { return k.mr == nil && k.mw == nil }

// slot returns the slot of a key's index.
func (t *Table) slot(key ib.LKey) *keyed {
	if len(t.slots) == 0 {
		return nil
	}
	return &t.slots[keyIndex(key)&uint32(len(t.slots)-1)]
}

// find returns the slot that holds a key's index; nil if none does.
func (t *Table) find(key ib.LKey) *keyed {
	if k := t.slot(key); k != nil && k.index == keyIndex(key) {
		return k
	}
	return nil
}

// put assigns a region or a window to a key's index; with neither it removes the object.
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

// grow doubles the table. Keys in separate slots stay in separate slots.
func (t *Table) grow() {
	old := t.slots
	t.slots = make([]keyed, max(8, 2*len(old)))
	for _, k := range old {
		if !k.free() {
			t.slots[k.index&uint32(len(t.slots)-1)] = k
		}
	}
}

// DrawKey draws a key for a region or a window from random. SetMR or SetMW uses it before another key is drawn.
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

// ClearKey removes the object of a key: a region, or a window, which is unbound.
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

// window returns the window of a key, whatever its low 8 bits are; nil if the key has none.
func (t *Table) window(key ib.RKey) *MW {
	if k := t.find(ib.LKey(key)); k != nil {
		return k.mw
	}
	return nil
}
