// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/provider"
)

// pd is a protection domain, with the number of objects in it.
type pd struct {
	handle provider.Handle
	number region.PD
	users  int
}

// pds holds the protection domains of a session.
type pds struct {
	handles.Table[pd]
	owner *owner
	last  region.PD
}

// allocate carries out provider.AllocPD.
func (t *pds) allocate() (grant provider.AllocPDGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	t.last++
	p := &pd{number: t.last}
	p.handle, err = t.Add(p)
	grant.PD = p.handle
	return grant, err
}

// deallocate carries out provider.DeallocPD.
func (t *pds) deallocate(r provider.DeallocPDRequest) error {
	if err := t.owner.enterToFree(); err != nil {
		return err
	}
	defer t.owner.leave()
	p, err := t.Get(r.PD)
	if err != nil {
		return err
	}
	if p.users > 0 {
		return fmt.Errorf("%w: the PD has %d objects (MR, MW, QP, SRQ, AH); close them first", verbs.ErrBusy, p.users)
	}
	t.Remove(r.PD)
	return nil
}

// describe describes the object for Session.Objects.
func (d *pd) describe(handle provider.Handle) Object {
	return Object{Handle: handle, Users: uint32(d.users)}
}
