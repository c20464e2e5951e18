// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"
	"reflect"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

const reregFlags = verbs.ReregChangeTranslation | verbs.ReregChangePD | verbs.ReregChangeAccess

// rereg carries out provider.ReregMR. A request in progress uses the old state of the region, and all later requests
// use the new one.
func (t *mrs) rereg(r provider.ReregMRRequest) error {
	if err := t.checkRereg(&r); err != nil {
		return err
	}
	return t.change(&r, nil)
}

// change changes a region and frees its old memory. unmap unmaps the new memory, if that is mapped for the region.
func (t *mrs) change(r *provider.ReregMRRequest, unmap func()) error {
	was, err := t.exchange(r, unmap)
	if err == nil && r.Flags&verbs.ReregChangeTranslation != 0 {
		was.free(t.owner)
	}
	return err
}

// exchange changes a region, and returns its old state.
func (t *mrs) exchange(r *provider.ReregMRRequest, unmap func()) (was mr, err error) {
	if err := t.owner.enter(); err != nil {
		return was, err
	}
	defer t.owner.leave()
	m, err := t.region(r.MR)
	if err != nil {
		return was, err
	}
	if m.null || m.fast || m.pd.handle == 0 {
		return was, fmt.Errorf("%w: a null region, a fast one and coherent memory cannot be changed", verbs.ErrInvalid)
	}
	next, err := m.changed(t.pds, r, unmap)
	if err != nil {
		return was, err
	}
	next.entry = next.newEntry(m.key)
	if err := m.changeUnbound(t.owner.engine(), func() { t.owner.entry.SetMR(next.entry) }); err != nil {
		return was, err
	}
	m.pd.users--
	next.pd.users++
	was, *m = *m, next
	return was, nil
}

// checkRereg makes the checks that depend only on the request.
func (t *mrs) checkRereg(r *provider.ReregMRRequest) error {
	if err := checkReregFlags(r); err != nil || r.Flags&verbs.ReregChangeTranslation == 0 {
		return err
	}
	if err := t.checkReach(); err != nil {
		return err
	}
	if len(r.Memory) == 0 {
		return fmt.Errorf("%w: ReregChangeTranslation needs memory of at least one byte", verbs.ErrInvalid)
	}
	return checkMR(len(r.Memory), r.IOVA, r.Access)
}

func checkReregFlags(r *provider.ReregMRRequest) error {
	switch {
	case r.Flags == 0 || r.Flags&^reregFlags != 0:
		return fmt.Errorf("%w: flags 0x%x; use ReregChangeTranslation, ReregChangePD and ReregChangeAccess", verbs.ErrInvalid, uint32(r.Flags))
	case r.Access != 0 && r.Flags&verbs.ReregChangeAccess == 0:
		return fmt.Errorf("%w: access flags without ReregChangeAccess; set it", verbs.ErrInvalid)
	}
	return nil
}

// changed returns the region with a request's changes; unmap unmaps the new memory. The caller holds card.mu.
func (m mr) changed(pds *pds, r *provider.ReregMRRequest, unmap func()) (_ mr, err error) {
	if r.Flags&verbs.ReregChangePD != 0 {
		if m.pd, err = pds.Get(r.PD); err != nil {
			return m, err
		}
	}
	if r.Flags&verbs.ReregChangeTranslation != 0 {
		if m.dm != nil {
			return m, fmt.Errorf("%w: a region of device memory cannot get other memory", verbs.ErrInvalid)
		}
		m.own, m.unmap, m.memory, m.iova = nil, unmap, r.Memory, r.IOVA
	}
	if r.Flags&verbs.ReregChangeAccess != 0 {
		m.access = r.Access
	}
	return m, checkAccess(m.iova, m.access)
}

// Mapping is memory of a program in another process, mapped into this process for one region.
type Mapping struct {
	Memory []byte
	// Unmap unmaps the memory. It is called once, without a lock, after the card's last access.
	Unmap func()
}

// holds reports whether an address is in memory that is mapped for the region.
func (m *mr) holds(address uintptr) bool {
	return m.unmap != nil && address-reflect.ValueOf(m.memory).Pointer() < uintptr(len(m.memory))
}

// regMapped carries out Session.RegMapped.
func (t *mrs) regMapped(r provider.AllocMRRequest, mapped func() (Mapping, error)) (grant provider.MRGrant, err error) {
	if err := checkMR(r.Length, r.IOVA, r.Access); err != nil {
		return grant, err
	}
	if err := t.owner.begin(); err != nil {
		return grant, err
	}
	defer t.owner.finish()
	m, err := mapped()
	if err != nil {
		return grant, err
	}
	if grant, err = t.register(r.PD, &mr{memory: m.Memory, unmap: m.Unmap, iova: r.IOVA, access: r.Access}); err != nil {
		m.Unmap()
	}
	grant.Memory = nil
	return grant, err
}

// reregMapped carries out Session.ReregMapped.
func (t *mrs) reregMapped(r provider.ReregMRRequest, length int, mapped func() (Mapping, error)) error {
	switch {
	case r.Flags&verbs.ReregChangeTranslation == 0:
		return fmt.Errorf("%w: new memory needs the flag ReregChangeTranslation", verbs.ErrInvalid)
	case length == 0:
		return fmt.Errorf("%w: ReregChangeTranslation needs memory of at least one byte", verbs.ErrInvalid)
	}
	if err := checkReregFlags(&r); err != nil {
		return err
	}
	if err := checkMR(length, r.IOVA, r.Access); err != nil {
		return err
	}
	if err := t.owner.begin(); err != nil {
		return err
	}
	defer t.owner.finish()
	m, err := mapped()
	if err != nil {
		return err
	}
	r.Memory = m.Memory
	if err = t.change(&r, m.Unmap); err != nil {
		m.Unmap()
	}
	return err
}
