package region

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// MW is the engine's entry of a memory window: a key of its own to a part of a region, with access of its
// own. Requests bind and invalidate it (IBA 10.6.7).
type MW struct {
	PD    PD
	Type2 bool // bound to a queue pair, and invalidated by its program or its peer

	key    ib.RKey // it is bound under; counts only while of is set
	of     *MR     // it is bound to; nil: it is not bound
	base   uint64  // the address of its first byte
	from   uint64  // that byte's offset in the region
	length uint64  // bytes
	access ib.AccessFlags
	holder any // the queue pair of one of type 2: only packets for it may use the window
}

func (w *MW) unbind() {
	if w.of != nil {
		w.of.windows--
	}
	w.of, w.holder = nil, nil
}

// part is the window's memory from an offset on, or its first piece; ok is false if not all of it is the window's.
func (w *MW) part(offset, length uint64) (memory []byte, ok bool) {
	if offset > w.length || length > w.length-offset {
		return nil, false
	}
	return w.of.part(w.from+offset, length)
}

// admits says that packets for a queue pair that are for memory of a PD may use the window under a key.
func (w *MW) admits(key ib.RKey, holder any, pd PD) bool {
	return w.of != nil && w.key == key && w.PD == pd && (w.holder == nil || w.holder == holder)
}

// bindAccess is what a window may allow.
const bindAccess = ib.AccessRemoteWrite | ib.AccessRemoteRead | ib.AccessRemoteAtomic | ib.AccessZeroBased

// Bind makes a window one to a part of a region, under a new key. A window of type 1 may be bound again, and
// is unbound by a length of 0; one of type 2 has to be invalidated first.
func (t *Table) Bind(holder any, pd PD, key ib.RKey, addr uint64, b ring.Bind) ib.WCStatus {
	mw, mr := t.window(key), t.region(b.LKey)
	switch {
	case mw == nil || mw.PD != pd || b.Access&^bindAccess != 0 || mw.Type2 && (mw.of != nil || b.Length == 0):
		return ib.WCMWBindErr
	case !mw.Type2 && b.Length == 0:
		mw.unbind()
		mw.key = key
		return ib.WCSuccess
	case mr == nil:
		return ib.WCMWBindErr
	}
	changes := b.Access & (ib.AccessRemoteWrite | ib.AccessRemoteAtomic)
	_, ok := mr.part(addr-mr.Base, b.Length)
	if mr.PD != pd || mr.Remote&ib.AccessMWBind == 0 || changes != 0 && !mr.Write || !ok || mr.fast != nil && mr.fast.signed() {
		return ib.WCMWBindErr
	}
	mw.unbind()
	mw.key, mw.of, mw.access, mw.base, mw.from, mw.length = key, mr, b.Access, addr, addr-mr.Base, b.Length
	if b.Access&ib.AccessZeroBased != 0 {
		mw.base = 0
	}
	if mw.Type2 {
		mw.holder = holder
	}
	mr.windows++
	return ib.WCSuccess
}

// Invalidate revokes the key of a window of type 2 or of a fast region, as its program or its peer asks. It returns
// false if there is none that the queue pair may invalidate: other regions keep their keys until they are deregistered.
// A peer may invalidate what it may use; the program also a region that is free, which stays so.
func (t *Table) Invalidate(holder any, pd PD, key ib.RKey, peer bool) bool {
	k := t.find(ib.LKey(key))
	switch {
	case k == nil:
		return false
	case k.mr != nil:
		mr := k.mr
		return mr.fast != nil && mr.PD == pd && mr.fast.key == ib.LKey(key) &&
			(!peer || mr.LKey != 0 && mr.Remote&^ib.AccessMWBind != 0) && mr.Free()
	}
	mw := k.mw
	if mw == nil || !mw.Type2 || !mw.admits(key, holder, pd) {
		return false
	}
	mw.unbind()
	return true
}
