//go:build linux

package hca

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// keyed is what a key names: a memory region or a memory window. Both are in one table, so that no key
// names two things.
type keyed struct {
	region *mr
	window *mw
}

// mw is a memory window. The engine knows what it is bound to.
type mw struct {
	pd  *pd
	key verbs.RKey // whose low 8 bits each bind may replace
}

// randomKey is what keys are drawn from: peers may not guess them.
func randomKey() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}

// regionOf finds a memory region.
func regionOf(s *Session, handle provider.Handle) (*mr, error) {
	k, err := s.keys.Get(handle)
	if err == nil && k.region == nil {
		err = fmt.Errorf("%w: a memory window, not an MR", verbs.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	return k.region, nil
}

// changeUnbound makes a change of the region between two rounds. It fails if windows are bound to the region.
func (m *mr) changeUnbound(s *Session, change func()) (err error) {
	s.entry.Engine().Do(func() {
		if windows := m.entry.Windows(); windows > 0 {
			err = fmt.Errorf("%w: memory windows that are bound to the region: %d; unbind, invalidate or close them first", verbs.ErrBusy, windows)
			return
		}
		if pieces := m.entry.Pieces(); pieces > 0 {
			err = fmt.Errorf("%w: pieces of the region that fast regions are registered of: %d; invalidate or close those first", verbs.ErrBusy, pieces)
			return
		}
		change()
	})
	return err
}

// allocMW carries out provider.AllocMW. A window counts as a region in the session's limits.
func allocMW(s *Session, r provider.AllocMWRequest) (grant provider.AllocMWGrant, err error) {
	if r.Type != verbs.MWType1 && r.Type != verbs.MWType2 {
		return grant, fmt.Errorf("%w: memory windows of type %d; there are 1 and 2", verbs.ErrInvalid, r.Type)
	}
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	w := &mw{}
	if w.pd, err = s.pds.Get(r.PD); err != nil {
		return grant, err
	}
	if grant.MW, err = s.keys.Add(&keyed{window: w}); err != nil {
		return grant, err
	}
	w.pd.users++
	entry := &region.MW{PD: w.pd.number, Type2: r.Type == verbs.MWType2}
	s.entry.Engine().Do(func() {
		w.key = verbs.RKey(s.entry.DrawKey(randomKey))
		s.entry.SetMW(w.key, entry)
	})
	grant.RKey = w.key
	return grant, nil
}

// deallocMW carries out provider.DeallocMW. When it returns, no request that uses the window is running.
func deallocMW(s *Session, r provider.DeallocMWRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	k, err := s.keys.Get(r.MW)
	switch {
	case err != nil:
		return err
	case k.window == nil:
		return fmt.Errorf("%w: an MR, not a memory window", verbs.ErrInvalid)
	}
	s.entry.Engine().Do(func() { s.entry.ClearKey(verbs.LKey(k.window.key)) })
	s.keys.Remove(r.MW)
	k.window.pd.users--
	return nil
}
