//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// dm is device memory, with the number of regions of it.
type dm struct {
	memory []byte
	users  int
}

// allocDM carries out provider.AllocDM.
func allocDM(s *Session, r provider.AllocDMRequest) (grant provider.AllocDMGrant, err error) {
	if r.Length < 1 || r.Length > provider.MaxDMSize {
		return grant, fmt.Errorf("%w: %d bytes of device memory; there can be 1 to %d", verbs.ErrInvalid, r.Length, provider.MaxDMSize)
	}
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.life.work.Done()
	memory, err := s.alloc(r.Length)
	if err != nil {
		return grant, err
	}
	if grant.DM, err = addDM(s, &dm{memory: memory}); err != nil {
		s.release(memory)
		return grant, err
	}
	grant.Memory = memory
	return grant, nil
}

func addDM(s *Session, d *dm) (provider.Handle, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.card.mu.Unlock()
	used := 0
	for _, other := range s.dms.All() {
		used += len(other.memory)
	}
	if len(d.memory) > provider.MaxDMSize-used {
		return 0, fmt.Errorf("%w: the session has %d of %d bytes of device memory", verbs.ErrLimit, used, provider.MaxDMSize)
	}
	return s.dms.Add(d)
}

// freeDM carries out provider.FreeDM.
func freeDM(s *Session, r provider.FreeDMRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	d, err := s.dms.Get(r.DM)
	if err != nil {
		return err
	}
	if d.users > 0 {
		return fmt.Errorf("%w: regions of the device memory: %d; close them first", verbs.ErrBusy, d.users)
	}
	s.dms.Remove(r.DM)
	s.release(d.memory)
	return nil
}

// regDMMR carries out provider.RegDMMR.
func regDMMR(s *Session, r provider.RegDMMRRequest) (grant provider.MRGrant, err error) {
	if err := checkMR(r.Length, 0, r.Access); err != nil {
		return grant, err
	}
	d, err := useDM(s, &r)
	if err != nil {
		return grant, err
	}
	if grant, err = registerMR(s, r.PD, &mr{dm: d, memory: d.memory[r.Offset:][:r.Length:r.Length], access: r.Access}); err != nil {
		s.card.mu.Lock()
		defer s.card.mu.Unlock()
		d.users--
	}
	return grant, err
}

// useDM finds the memory of a region, and keeps it from being freed.
func useDM(s *Session, r *provider.RegDMMRRequest) (*dm, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.card.mu.Unlock()
	d, err := s.dms.Get(r.DM)
	if err != nil {
		return nil, err
	}
	if size := len(d.memory); r.Offset < 0 || r.Offset > size || r.Length > size-r.Offset {
		return nil, fmt.Errorf("%w: %d bytes at %d of %d of device memory", verbs.ErrInvalid, r.Length, r.Offset, size)
	}
	d.users++
	return d, nil
}
