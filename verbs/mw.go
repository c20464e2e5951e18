package verbs

import (
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// MW is a memory window (ibv_mw): an RKey to a part of a region, with access of its own, which costs no
// command to give and to revoke. A request binds it; it is bound when the request's completion says so.
//
// A window of type 1 is for all peers of its PD; another bind changes or ends its binding. One of
// type 2 is for the peer of the queue pair that binds it, until WRLocalInv or the peer's WRSendWithInv
// invalidates its key; only then can it be bound again.
type MW struct {
	ctx    *Context
	handle provider.Handle
	kind   MWType
	rkey   atomic.Uint32
}

// AllocMW makes a memory window, which is not bound (ibv_alloc_mw).
func (p *PD) AllocMW(kind MWType) (*MW, error) {
	if p == nil {
		return nil, fmt.Errorf("allocate MW: %w", errNil)
	}
	grant, err := provider.Do(p.ctx.provider, provider.AllocMW, provider.AllocMWRequest{PD: p.handle, Type: kind})
	if err != nil {
		return nil, fmt.Errorf("allocate MW: %w", err)
	}
	w := &MW{ctx: p.ctx, handle: grant.MW, kind: kind}
	w.rkey.Store(uint32(grant.RKey))
	return w, nil
}

// Type is the kind of the window.
func (w *MW) Type() MWType {
	if w == nil {
		return 0
	}
	return w.kind
}

// RKey is the key of the bind that was posted last. IncRKey gives one for the next.
func (w *MW) RKey() RKey {
	if w == nil {
		return 0
	}
	return RKey(w.rkey.Load())
}

// Close frees the window (ibv_dealloc_mw). When it returns, nothing is read or written by its key.
func (w *MW) Close() error {
	if w == nil {
		return fmt.Errorf("deallocate MW: %w", errNil)
	}
	if err := provider.Exec(w.ctx.provider, provider.DeallocMW, provider.DeallocMWRequest{MW: w.handle}); err != nil {
		return fmt.Errorf("deallocate MW: %w", err)
	}
	return nil
}

// MWBind says what a memory window is bound to (ibv_mw_bind_info). The card checks it: WCMWBindErr if the
// region's access flags lack AccessMWBind, or AccessLocalWrite for a window that peers may write to.
type MWBind struct {
	MW     *MW
	MR     *MR
	Addr   uint64      // in the region
	Length uint64      // bytes; 0 unbinds a window of type 1
	Access AccessFlags // remote write, read and atomic; AccessZeroBased: peers' addresses begin at 0
}

// windowAccess is what a window may allow.
const windowAccess = AccessRemoteWrite | AccessRemoteRead | AccessRemoteAtomic | AccessZeroBased

func (b *MWBind) check() error {
	switch {
	case b == nil || b.MW == nil || b.MR == nil && b.Length > 0:
		return fmt.Errorf("%w: a bind needs SendWR.Bind, with the window (MW) and the region (MR)", ErrInvalid)
	case b.Access&^windowAccess != 0:
		return fmt.Errorf("%w: a memory window cannot have the access flags %v", ErrInvalid, b.Access&^windowAccess)
	}
	return nil
}

// key is the key of the bind: the window's, with the low 8 bits that the program has chosen.
func (b *MWBind) key(chosen RKey) RKey { return b.MW.RKey()&^keyMask | chosen&keyMask }

// put writes the bind into the request's slot. The window shows the new key from then on.
func (b *MWBind) put(data []byte, chosen RKey) {
	bind := ring.Bind{Length: b.Length, Access: b.Access}
	if b.MR != nil {
		bind.LKey = b.MR.cardKey()
	}
	ring.PutBind(data, bind)
	b.MW.rkey.Store(uint32(b.key(chosen)))
}

// BindMW posts the bind of a window of type 1, under its next key (ibv_bind_mw). One of type 2 is bound
// by PostSend. The errors are those of PostSend.
func (q *QP) BindMW(id uint64, flags SendFlags, bind *MWBind) error {
	if q == nil || bind == nil || bind.MW == nil {
		return fmt.Errorf("bind MW: %w", errNil)
	}
	if bind.MW.kind != MWType1 {
		return fmt.Errorf("bind MW: %w: a window of type %d; PostSend binds it, with a new RKey", ErrInvalid, bind.MW.kind)
	}
	return q.PostSend([]SendWR{{ID: id, Opcode: WRBindMW, Flags: flags, RKey: IncRKey(bind.MW.RKey()), Bind: bind}})
}
