// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// allocMW carries out provider.AllocMW. A window counts as a region in the session's limits.
func (t *mrs) allocMW(r provider.AllocMWRequest) (grant provider.AllocMWGrant, err error) {
	if r.Type != verbs.MWType1 && r.Type != verbs.MWType2 {
		return grant, fmt.Errorf("%w: memory windows of type %d; there are 1 and 2", verbs.ErrInvalid, r.Type)
	}
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	w := &mw{}
	if w.pd, err = t.pds.Get(r.PD); err != nil {
		return grant, err
	}
	if grant.MW, err = t.Add(&keyed{window: w}); err != nil {
		return grant, err
	}
	w.pd.users++
	entry := &region.MW{PD: w.pd.number, Type2: r.Type == verbs.MWType2}
	t.owner.engine().Do(func() {
		w.key = verbs.RKey(t.owner.entry.DrawKey(randomKey))
		t.owner.entry.SetMW(w.key, entry)
	})
	grant.RKey = w.key
	return grant, nil
}

// deallocMW carries out provider.DeallocMW. When it returns, no request that uses the window is in progress.
func (t *mrs) deallocMW(r provider.DeallocMWRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	k, err := t.Get(r.MW)
	switch {
	case err != nil:
		return err
	case k.window == nil:
		return fmt.Errorf("%w: the handle is an MR, not a memory window", verbs.ErrInvalid)
	}
	t.owner.engine().Do(func() { t.owner.entry.ClearKey(verbs.LKey(k.window.key)) })
	t.Remove(r.MW)
	k.window.pd.users--
	return nil
}
