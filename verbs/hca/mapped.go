//go:build linux

package hca

import (
	"fmt"
	"reflect"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Mapping is memory of a program in another process, as it is mapped here for one region.
type Mapping struct {
	Memory []byte
	// Unmap ends the mapping. It is called once, without a lock, when the card touches the memory no more.
	Unmap func()
}

// holds says whether an address is one of memory that is mapped for the region.
func (m *mr) holds(address uintptr) bool {
	return m.unmap != nil && address-reflect.ValueOf(m.memory).Pointer() < uintptr(len(m.memory))
}

// RegMapped registers memory of the program's own. What is asked for is checked before mapped is called, which
// maps as many bytes as the request says. The grant has no memory: the program has it. Errors: those of AllocMR,
// and those of mapped.
func (s *Session) RegMapped(r provider.AllocMRRequest, mapped func() (Mapping, error)) (grant provider.MRGrant, err error) {
	if err := checkMR(r.Length, r.IOVA, r.Access); err != nil {
		return grant, err
	}
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.life.work.Done()
	m, err := mapped()
	if err != nil {
		return grant, err
	}
	if grant, err = registerMR(s, r.PD, &mr{memory: m.Memory, unmap: m.Unmap, iova: r.IOVA, access: r.Access}); err != nil {
		m.Unmap()
	}
	grant.Memory = nil
	return grant, err
}

// ReregMapped is ReregMR with ReregChangeTranslation to memory of the program's own, of this length. The region
// is as it was when it fails.
func (s *Session) ReregMapped(r provider.ReregMRRequest, length int, mapped func() (Mapping, error)) error {
	switch {
	case r.Flags&verbs.ReregChangeTranslation == 0:
		return fmt.Errorf("%w: other memory without ReregChangeTranslation; set it", verbs.ErrInvalid)
	case length == 0:
		return fmt.Errorf("%w: ReregChangeTranslation to no memory", verbs.ErrInvalid)
	}
	if err := checkReregFlags(&r); err != nil {
		return err
	}
	if err := checkMR(length, r.IOVA, r.Access); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.life.work.Done()
	m, err := mapped()
	if err != nil {
		return err
	}
	r.Memory = m.Memory
	if err = rereg(s, &r, m.Unmap); err != nil {
		m.Unmap()
	}
	return err
}
