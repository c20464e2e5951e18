// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// MW is the engine's part of a memory window: a separate key to a part of a region, with its own access. Requests bind
// and invalidate it (IBA 10.6.7).
type MW struct {
	PD    PD
	Type2 bool // bound to a queue pair, and invalidated by its program or its peer

	key    ib.RKey // the current key; valid only while of is set
	of     *MR     // the region that it is bound to; nil: none
	base   uint64  // the address of its first byte
	from   uint64  // offset of that byte in the region
	length uint64  // length, in bytes
	access ib.AccessFlags
	holder any // type 2: the queue pair that the window is bound to; only packets for it may use the window
}

func (w *MW) unbind() {
	if w.of != nil {
		w.of.windows--
	}
	w.of, w.holder = nil, nil
}

// part returns the first contiguous piece of length bytes of the window from offset on; ok is false if they are not all
// in the window.
func (w *MW) part(offset, length uint64) (memory []byte, ok bool) {
	if offset > w.length || length > w.length-offset {
		return nil, false
	}
	return w.of.part(w.from+offset, length)
}

// admits reports whether packets for a queue pair with the given PD may use the window with the given key.
func (w *MW) admits(key ib.RKey, holder any, pd PD) bool {
	return w.of != nil && w.key == key && w.PD == pd && (w.holder == nil || w.holder == holder)
}

// bindAccess are the access flags that a window may have.
const bindAccess = ib.AccessRemoteWrite | ib.AccessRemoteRead | ib.AccessRemoteAtomic | ib.AccessZeroBased

// Bind binds a window to a part of a region, with a new key. A window of type 1 may be bound again, and a length of 0
// unbinds it. A window of type 2 must be invalidated before it is bound again.
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

// Invalidate revokes the key of a window of type 2 or of a fast region, on behalf of the program or its peer. It
// returns false if that is not permitted; other regions keep their keys until they are deregistered. A peer can
// invalidate only keys that it is permitted to use. The program can also invalidate a free region, which stays free.
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
