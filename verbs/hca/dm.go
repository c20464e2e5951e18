// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// dm is device memory, with the number of regions registered in it.
type dm struct {
	memory []byte
	users  int
}

// dms holds the device memory of a session.
type dms struct {
	handles.Table[dm]
	owner *owner
}

// allocate carries out provider.AllocDM.
func (t *dms) allocate(r provider.AllocDMRequest) (grant provider.AllocDMGrant, err error) {
	if r.Length < 1 || r.Length > ib.MaxDMSize {
		return grant, fmt.Errorf("%w: %d bytes of device memory; there can be 1 to %d", verbs.ErrInvalid, r.Length, ib.MaxDMSize)
	}
	if err := t.owner.begin(); err != nil {
		return grant, err
	}
	defer t.owner.finish()
	memory, err := t.owner.alloc(r.Length)
	if err != nil {
		return grant, err
	}
	if grant.DM, err = t.link(&dm{memory: memory}); err != nil {
		t.owner.release(memory)
		return grant, err
	}
	grant.Memory = memory
	return grant, nil
}

func (t *dms) link(d *dm) (provider.Handle, error) {
	if err := t.owner.enter(); err != nil {
		return 0, err
	}
	defer t.owner.leave()
	used := 0
	for _, other := range t.All() {
		used += len(other.memory)
	}
	if len(d.memory) > ib.MaxDMSize-used {
		return 0, fmt.Errorf("%w: the session uses %d of %d bytes of device memory", verbs.ErrLimit, used, ib.MaxDMSize)
	}
	return t.Add(d)
}

// free carries out provider.FreeDM.
func (t *dms) free(r provider.FreeDMRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	d, err := t.Get(r.DM)
	if err != nil {
		return err
	}
	if d.users > 0 {
		return fmt.Errorf("%w: the device memory has %d regions; close them first", verbs.ErrBusy, d.users)
	}
	t.Remove(r.DM)
	t.owner.release(d.memory)
	return nil
}

// use finds the memory of a region, and prevents it from being freed.
func (t *dms) use(r *provider.RegDMMRRequest) (*dm, error) {
	if err := t.owner.enter(); err != nil {
		return nil, err
	}
	defer t.owner.leave()
	d, err := t.Get(r.DM)
	if err != nil {
		return nil, err
	}
	if size := len(d.memory); r.Offset < 0 || r.Offset > size || r.Length > size-r.Offset {
		return nil, fmt.Errorf("%w: %d bytes at %d of %d of device memory", verbs.ErrInvalid, r.Length, r.Offset, size)
	}
	d.users++
	return d, nil
}

// releaseAll releases all device memory, at the end of the session.
func (t *dms) releaseAll() {
	for _, d := range t.All() {
		t.owner.release(d.memory)
	}
}
