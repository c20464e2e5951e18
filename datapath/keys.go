package datapath

import (
	"github.com/roced/roced/datapath/ring"
)

// A key names a memory region or a memory window of a session, to its own program (lkey) and to peers (rkey).
// Peers may not guess it, so it says nothing of where the table has it:
//
//	index, 24 bits, drawn at random | low 8 bits: a region's are drawn too; a window's owner chooses them (ib_inc_rkey)
//
// The index is drawn so that its low bits are those of a free slot. Of a table that is never more than half
// full that takes one bit of 24; and one look finds a key, or that there is none.

// keys is the table of a session's keys.
type keys struct {
	slots []keyed // a power of two
	count int
}

// keyed is what a key names: a region, a window, or nothing.
type keyed struct {
	index uint32
	mr    *MR
	mw    *MW
}

func keyIndex(key ring.LKey) uint32 { return uint32(key) >> 8 }

func (k *keyed) free() bool { return k.mr == nil && k.mw == nil }

// slot is where a key's index is, if it is in the table.
func (t *keys) slot(key ring.LKey) *keyed {
	if len(t.slots) == 0 {
		return nil
	}
	return &t.slots[keyIndex(key)&uint32(len(t.slots)-1)]
}

// find is what a key's index names; nil if there is none.
func (t *keys) find(key ring.LKey) *keyed {
	if k := t.slot(key); k != nil && k.index == keyIndex(key) {
		return k
	}
	return nil
}

// draw finds a key that can be put into the table, of what random gives.
func (t *keys) draw(random func() uint32) ring.LKey {
	if 2*(t.count+1) > len(t.slots) {
		t.grow()
	}
	for {
		if key := ring.LKey(random()); keyIndex(key) != 0 && t.slot(key).free() {
			return key
		}
	}
}

// put has a key's index name a region or a window; neither takes it out.
func (t *keys) put(key ring.LKey, mr *MR, mw *MW) {
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
func (t *keys) grow() {
	old := t.slots
	t.slots = make([]keyed, max(8, 2*len(old)))
	for _, k := range old {
		if !k.free() {
			t.slots[k.index&uint32(len(t.slots)-1)] = k
		}
	}
}

// DrawKey finds a key for a region or a window, of what random gives. It is taken by SetMR or SetMW, before
// another one is drawn. It runs in Do.
func (s *Session) DrawKey(random func() uint32) ring.LKey { return s.keys.draw(random) }

// SetMR has the region's LKey name it. It runs in Do.
func (s *Session) SetMR(mr *MR) { s.keys.put(mr.LKey, mr, nil) }

// SetMW has a key's index name a memory window, which is not bound yet. It runs in Do.
func (s *Session) SetMW(key ring.RKey, mw *MW) {
	mw.key = key
	s.keys.put(ring.LKey(key), nil, mw)
}

// ClearKey forgets what a key names: a region, or a window, which is unbound. It runs in Do.
func (s *Session) ClearKey(key ring.LKey) {
	if k := s.keys.find(key); k != nil {
		if k.mw != nil {
			k.mw.unbind()
		}
		if k.mr != nil && k.mr.fast != nil {
			k.mr.fast.forget()
		}
		s.keys.put(key, nil, nil)
	}
}

// region finds the memory region that a key names; nil if there is none.
func (s *Session) region(key ring.LKey) *MR {
	if k := s.keys.find(key); k != nil && k.mr != nil && k.mr.LKey == key {
		return k.mr
	}
	return nil
}

// window finds the window that a key names, whatever its low 8 bits are; nil if there is none.
func (s *Session) window(key ring.RKey) *MW {
	if k := s.keys.find(ring.LKey(key)); k != nil {
		return k.mw
	}
	return nil
}

// MW is the engine's entry of a memory window: a key of its own to a part of a region, with access of its
// own. Requests bind and invalidate it (IBA 10.6.7).
type MW struct {
	PD    PD
	Type2 bool // bound to a queue pair, and invalidated by its program or its peer

	key    ring.RKey // it is bound under; counts only while of is set
	of     *MR       // it is bound to; nil: it is not bound
	base   uint64    // the address of its first byte
	from   uint64    // that byte's offset in the region
	length uint64    // bytes
	access ring.AccessFlags
	qp     *QP // of type 2: only packets for it may use the window
}

// Windows is how many memory windows are bound to the region. It runs in Do.
func (m *MR) Windows() int { return m.windows }

func (w *MW) unbind() {
	if w.of != nil {
		w.of.windows--
	}
	w.of, w.qp = nil, nil
}

// part is the window's memory from an offset on, or its first piece; ok is false if not all of it is the window's.
func (w *MW) part(offset, length uint64) (memory []byte, ok bool) {
	if offset > w.length || length > w.length-offset {
		return nil, false
	}
	return w.of.part(w.from+offset, length)
}

// admits says that packets for a queue pair that are for memory of a PD may use the window under a key.
func (w *MW) admits(key ring.RKey, qp *QP, pd PD) bool {
	return w.of != nil && w.key == key && w.PD == pd && (w.qp == nil || w.qp == qp)
}

// bindAccess is what a window may allow.
const bindAccess = ring.AccessRemoteWrite | ring.AccessRemoteRead | ring.AccessRemoteAtomic | ring.AccessZeroBased

// bind makes a window one to a part of a region, under a new key. A window of type 1 may be bound again, and
// is unbound by a length of 0; one of type 2 has to be invalidated first.
func (qp *QP) bind(key ring.RKey, addr uint64, b ring.Bind) ring.WCStatus {
	mw, mr := qp.Session.window(key), qp.Session.region(b.LKey)
	switch {
	case mw == nil || mw.PD != qp.PD || b.Access&^bindAccess != 0 || mw.Type2 && (mw.of != nil || b.Length == 0):
		return ring.WCMWBindErr
	case !mw.Type2 && b.Length == 0:
		mw.unbind()
		mw.key = key
		return ring.WCSuccess
	case mr == nil:
		return ring.WCMWBindErr
	}
	changes := b.Access & (ring.AccessRemoteWrite | ring.AccessRemoteAtomic)
	_, ok := mr.part(addr-mr.Base, b.Length)
	if mr.PD != qp.PD || mr.Remote&ring.AccessMWBind == 0 || changes != 0 && !mr.Write || !ok || mr.fast != nil && mr.fast.signed() {
		return ring.WCMWBindErr
	}
	mw.unbind()
	mw.key, mw.of, mw.access, mw.base, mw.from, mw.length = key, mr, b.Access, addr, addr-mr.Base, b.Length
	if b.Access&ring.AccessZeroBased != 0 {
		mw.base = 0
	}
	if mw.Type2 {
		mw.qp = qp
	}
	mr.windows++
	return ring.WCSuccess
}

// invalidate revokes the key of a window of type 2 or of a fast region, as its program or its peer asks. It returns
// false if there is none that the queue pair may invalidate: other regions keep their keys until they are deregistered.
// A peer may invalidate what it may use; the program also a region that is free, which stays so.
func (s *Session) invalidate(qp *QP, pd PD, key ring.RKey, peer bool) bool {
	k := s.keys.find(ring.LKey(key))
	switch {
	case k == nil:
		return false
	case k.mr != nil:
		mr := k.mr
		return mr.fast != nil && mr.PD == pd && mr.fast.key == ring.LKey(key) &&
			(!peer || mr.LKey != 0 && mr.Remote&^ring.AccessMWBind != 0) && mr.Free()
	}
	mw := k.mw
	if mw == nil || !mw.Type2 || !mw.admits(key, qp, pd) {
		return false
	}
	mw.unbind()
	return true
}
