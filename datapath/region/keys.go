package region

import (
	"github.com/roced/roced/verbs/ib"
)

// A key names a memory region or a memory window of a session, to its own program (lkey) and to peers (rkey).
// Peers may not guess it, so it says nothing of where the table has it:
//
//	index, 24 bits, drawn at random | low 8 bits: a region's are drawn too; a window's owner chooses them (ib_inc_rkey)
//
// The index is drawn so that its low bits are those of a free slot. Of a table that is never more than half
// full that takes one bit of 24; and one look finds a key, or that there is none.

// Table is what the keys of a session name.
type Table struct {
	slots []keyed // a power of two
	count int
}

// keyed is what a key names: a region, a window, or nothing.
type keyed struct {
	index uint32
	mr    *MR
	mw    *MW
}

func keyIndex(key ib.LKey) uint32 { return uint32(key) >> 8 }

func (k *keyed) free() bool { return k.mr == nil && k.mw == nil }

// slot is where a key's index is, if it is in the table.
func (t *Table) slot(key ib.LKey) *keyed {
	if len(t.slots) == 0 {
		return nil
	}
	return &t.slots[keyIndex(key)&uint32(len(t.slots)-1)]
}

// find is what a key's index names; nil if there is none.
func (t *Table) find(key ib.LKey) *keyed {
	if k := t.slot(key); k != nil && k.index == keyIndex(key) {
		return k
	}
	return nil
}

// put has a key's index name a region or a window; neither takes it out.
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

// grow doubles the table. No two of its keys come into one slot, since they were in two.
func (t *Table) grow() {
	old := t.slots
	t.slots = make([]keyed, max(8, 2*len(old)))
	for _, k := range old {
		if !k.free() {
			t.slots[k.index&uint32(len(t.slots)-1)] = k
		}
	}
}

// DrawKey finds a key for a region or a window, of what random gives. It is taken by SetMR or SetMW, before another
// one is drawn.
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

// SetMR has the region's LKey name it.
func (t *Table) SetMR(mr *MR) { t.put(mr.LKey, mr, nil) }

// SetMW has a key's index name a memory window, which is not bound yet.
func (t *Table) SetMW(key ib.RKey, mw *MW) {
	mw.key = key
	t.put(ib.LKey(key), nil, mw)
}

// ClearKey forgets what a key names: a region, or a window, which is unbound.
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

// region finds the memory region that a key names; nil if there is none.
func (t *Table) region(key ib.LKey) *MR {
	if k := t.find(key); k != nil && k.mr != nil && k.mr.LKey == key {
		return k.mr
	}
	return nil
}

// window finds the window that a key names, whatever its low 8 bits are; nil if there is none.
func (t *Table) window(key ib.RKey) *MW {
	if k := t.find(ib.LKey(key)); k != nil {
		return k.mw
	}
	return nil
}
