//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

const reregFlags = verbs.ReregChangeTranslation | verbs.ReregChangePD | verbs.ReregChangeAccess

// ReregMR implements provider.Provider. A request in the engine's hands uses the region as it was; all
// that run after ReregMR use it as it is then.
func (s *Session) ReregMR(r provider.ReregMRRequest) error {
	if err := s.checkRereg(&r); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	m, err := s.region(r.MR)
	if err != nil {
		return err
	}
	next, err := s.changedMR(*m, &r)
	if err != nil {
		return err
	}
	next.entry = next.newEntry(m.entry.LKey)
	if err := s.changeRegion(m, func() { s.entry.SetMR(next.entry) }); err != nil {
		return err
	}
	m.pd.users--
	next.pd.users++
	was := *m
	*m = next
	if r.Flags&verbs.ReregChangeTranslation != 0 {
		s.release(was.own)
	}
	return nil
}

// checkRereg refuses what can be seen from the request alone.
func (s *Session) checkRereg(r *provider.ReregMRRequest) error {
	switch {
	case r.Flags == 0 || r.Flags&^reregFlags != 0:
		return fmt.Errorf("%w: flags 0x%x; there are ReregChangeTranslation, ReregChangePD and ReregChangeAccess", verbs.ErrInvalid, uint32(r.Flags))
	case r.Access != 0 && r.Flags&verbs.ReregChangeAccess == 0:
		return fmt.Errorf("%w: access flags without ReregChangeAccess", verbs.ErrInvalid)
	case r.Flags&verbs.ReregChangeTranslation == 0:
		return nil
	}
	if err := s.checkReach(); err != nil {
		return err
	}
	if len(r.Memory) == 0 {
		return fmt.Errorf("%w: ReregChangeTranslation to no memory", verbs.ErrInvalid)
	}
	return checkMR(len(r.Memory), r.IOVA, r.Access)
}

// changedMR is a region as a request changes it. The caller holds card.mu.
func (s *Session) changedMR(m mr, r *provider.ReregMRRequest) (_ mr, err error) {
	if r.Flags&verbs.ReregChangePD != 0 {
		if m.pd, err = s.pds.get(r.PD); err != nil {
			return m, err
		}
	}
	if r.Flags&verbs.ReregChangeTranslation != 0 {
		m.own, m.memory, m.iova = nil, r.Memory, r.IOVA
	}
	if r.Flags&verbs.ReregChangeAccess != 0 {
		m.access = r.Access
	}
	return m, checkAccess(m.iova, m.access)
}
