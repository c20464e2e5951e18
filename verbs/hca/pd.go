package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
)

// pd is a protection domain, with the number of objects in it.
type pd struct {
	number datapath.PD
	users  int
}

// AllocPD implements verbs.Provider.
func (s *Session) AllocPD() (grant verbs.AllocPDGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	s.lastPD++
	grant.PD, err = s.pds.add(&pd{number: s.lastPD})
	return grant, err
}

// DeallocPD implements verbs.Provider.
func (s *Session) DeallocPD(r verbs.DeallocPDRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	p, err := s.pds.get(r.PD)
	if err != nil {
		return err
	}
	if p.users > 0 {
		return fmt.Errorf("%w: the PD has %d objects (MR, QP, SRQ, AH); close them first", verbs.ErrBusy, p.users)
	}
	s.pds.remove(r.PD)
	return nil
}
