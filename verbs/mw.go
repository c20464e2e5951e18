// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/provider"
)

// MW is a memory window (ibv_mw): an RKey to a part of a region, with its own access flags. It is granted and revoked
// by requests, without commands. A window is bound when the completion of the bind request reports success.
//
// A window of type 1 is usable by all peers of its PD; another bind changes or ends its binding. A window of type 2 is
// usable by the peer of the queue pair that binds it, until WRLocalInv or the peer's WRSendWithInv invalidates its key;
// only then can it be bound again.
type MW struct {
	ctx    *Context
	handle provider.Handle
	kind   MWType
	rkey   atomic.Uint32
}

// AllocMW allocates an unbound memory window (ibv_alloc_mw).
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

// Type returns the type of the window.
func (w *MW) Type() MWType {
	if w == nil {
		return 0
	}
	return w.kind
}

// RKey returns the key of the bind that was posted last. IncRKey computes the key of the next bind.
func (w *MW) RKey() RKey {
	if w == nil {
		return 0
	}
	return RKey(w.rkey.Load())
}

// Close frees the window (ibv_dealloc_mw). After it has returned, its key grants no access.
func (w *MW) Close() error {
	if w == nil {
		return fmt.Errorf("deallocate MW: %w", errNil)
	}
	if err := provider.Exec(w.ctx.provider, provider.DeallocMW, provider.DeallocMWRequest{MW: w.handle}); err != nil {
		return fmt.Errorf("deallocate MW: %w", err)
	}
	return nil
}

// MWBind specifies the binding of a memory window (ibv_mw_bind_info). The card checks it: WCMWBindErr if the region's
// access flags lack AccessMWBind, or AccessLocalWrite for a window that peers may write to.
type MWBind struct {
	MW     *MW
	MR     *MR
	Addr   uint64      // in the region
	Length uint64      // bytes; 0 unbinds a window of type 1
	Access AccessFlags // remote write, read and atomic; AccessZeroBased: peers' addresses begin at 0
}

// windowAccess are the access flags that a window may have.
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

// key returns the key of the bind: the window's, with the low 8 bits chosen by the program.
func (b *MWBind) key(chosen RKey) RKey { return b.MW.RKey()&^keyMask | chosen&keyMask }

// put writes the bind into the request's slot. MW.RKey returns the new key from then on.
func (b *MWBind) put(data []byte, chosen RKey) {
	bind := ring.Bind{Length: b.Length, Access: b.Access}
	if b.MR != nil {
		bind.LKey = b.MR.cardKey()
	}
	ring.PutBind(data, bind)
	b.MW.rkey.Store(uint32(b.key(chosen)))
}

// BindMW posts the bind of a window of type 1 with its next key (ibv_bind_mw). PostSend binds windows of type 2. Errors
// are those of PostSend.
func (q *QP) BindMW(id uint64, flags SendFlags, bind *MWBind) error {
	if q == nil || bind == nil || bind.MW == nil {
		return fmt.Errorf("bind MW: %w", errNil)
	}
	if bind.MW.kind != MWType1 {
		return fmt.Errorf("bind MW: %w: the window is of type %d; bind it by PostSend, with a new RKey", ErrInvalid, bind.MW.kind)
	}
	return q.PostSend([]SendWR{{ID: id, Opcode: WRBindMW, Flags: flags, RKey: IncRKey(bind.MW.RKey()), Bind: bind}})
}
