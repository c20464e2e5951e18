//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// pd is a protection domain, with the number of objects in it.
type pd struct {
	handle provider.Handle
	number region.PD
	users  int
}

// AllocPD implements provider.Provider.
func (s *Session) AllocPD() (grant provider.AllocPDGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	s.lastPD++
	p := &pd{number: s.lastPD}
	p.handle, err = s.pds.add(p)
	grant.PD = p.handle
	return grant, err
}

// DeallocPD implements provider.Provider.
func (s *Session) DeallocPD(r provider.DeallocPDRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	p, err := s.pds.get(r.PD)
	if err != nil {
		return err
	}
	if p.users > 0 {
		return fmt.Errorf("%w: the PD has %d objects (MR, MW, QP, SRQ, AH); close them first", verbs.ErrBusy, p.users)
	}
	s.pds.remove(r.PD)
	return nil
}
