// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/provider"
)

// allocFast carries out provider.AllocFastMR. The list of the region is in memory of the session.
func (t *mrs) allocFast(r provider.AllocFastMRRequest) (provider.MRGrant, error) {
	switch {
	case r.Type > kernel.MRTypeSGGaps:
		return provider.MRGrant{}, fmt.Errorf("%w: fast regions of type %d; use MRTypeMemReg, MRTypeIntegrity or MRTypeSGGaps", verbs.ErrInvalid, r.Type)
	case r.Entries < 1 || r.Entries > ring.MaxRegEntries:
		return provider.MRGrant{}, fmt.Errorf("%w: a fast region of %d entries; there can be 1 to %d", verbs.ErrInvalid, r.Entries, ring.MaxRegEntries)
	}
	if r.Type == kernel.MRTypeIntegrity {
		return t.registerOwn(r.PD, 2*r.Entries*ring.RegEntryLen+ring.SigAttrsLen, &mr{fast: true, signed: true})
	}
	return t.registerOwn(r.PD, r.Entries*ring.RegEntryLen, &mr{fast: true})
}

// checkStatus carries out provider.CheckMRStatus.
func (t *mrs) checkStatus(r provider.CheckMRStatusRequest) (grant provider.CheckMRStatusGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	m, err := t.region(r.MR)
	if err != nil {
		return grant, err
	}
	if !m.signed {
		return grant, fmt.Errorf("%w: the region has no signatures; PD.AllocIntegrityMR creates a region that has", verbs.ErrInvalid)
	}
	t.owner.engine().Do(func() { grant.Err, grant.Failed = m.entry.SigStatus() })
	return grant, nil
}

// allocCoherent carries out provider.AllocCoherent. No queue pair is in the region's PD, so its own key is useless.
func (t *mrs) allocCoherent(r provider.AllocCoherentRequest) (provider.MRGrant, error) {
	if r.Length < 1 || r.Length > maxAlloc {
		return provider.MRGrant{}, fmt.Errorf("%w: %d bytes of coherent memory; there can be 1 to %d", verbs.ErrInvalid, r.Length, maxAlloc)
	}
	return t.registerOwn(0, r.Length, &mr{pd: &pd{}, access: verbs.AccessLocalWrite})
}

// registerOwn registers a region in length bytes of new memory of the session.
func (t *mrs) registerOwn(pd provider.Handle, length int, m *mr) (grant provider.MRGrant, err error) {
	if err := t.owner.begin(); err != nil {
		return grant, err
	}
	defer t.owner.finish()
	if m.own, err = t.owner.alloc(length); err != nil {
		return grant, err
	}
	m.memory = m.own
	if grant, err = t.register(pd, m); err != nil {
		t.owner.release(m.own)
	}
	return grant, err
}

// mapFMR carries out provider.MapFMR.
func (t *mrs) mapFMR(r provider.MapFMRRequest) error {
	return t.changeFast(r.MR, func(m *mr) error {
		if uint32(r.Key)>>8 != uint32(m.key)>>8 {
			return fmt.Errorf("%w: key 0x%x for the region with key 0x%x; only the low 8 bits are free to choose", verbs.ErrInvalid, uint32(r.Key), uint32(m.key))
		}
		if t.owner.entry.Register(m.pd.number, r.Key, r.IOVA, r.Reg, false) != verbs.WCSuccess {
			return fmt.Errorf("%w: %d bytes in %d pages at 0x%x; the pages have to be mapped memory of the session, in a direction that the access flags (%v) allow",
				verbs.ErrInvalid, r.Reg.Length, r.Reg.Count, r.IOVA, r.Reg.Access)
		}
		return nil
	})
}

// unmapFMR carries out provider.UnmapFMR.
func (t *mrs) unmapFMR(r provider.UnmapFMRRequest) error {
	return t.changeFast(r.MR, func(*mr) error { return nil })
}

// changeFast invalidates a fast region and makes a change to it, between two bursts.
func (t *mrs) changeFast(handle provider.Handle, change func(*mr) error) (err error) {
	if err := t.owner.enter(); err != nil {
		return err
	}
	defer t.owner.leave()
	m, err := t.region(handle)
	if err != nil {
		return err
	}
	if !m.fast {
		return fmt.Errorf("%w: the region is not a fast one", verbs.ErrInvalid)
	}
	t.owner.engine().Do(func() {
		if !m.entry.Free() {
			err = fmt.Errorf("%w: memory windows are bound to the region; unbind, invalidate or close them first", verbs.ErrBusy)
			return
		}
		err = change(m)
	})
	return err
}
