package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
)

// mr is a memory region. Its lkey is made of its handle.
type mr struct {
	pd  *pd
	own []byte // the session's memory; nil for the caller's
}

// AllocMR implements verbs.Provider.
func (s *Session) AllocMR(r verbs.AllocMRRequest) (verbs.MRGrant, error) {
	if err := checkMR(r.Length, r.Access); err != nil {
		return verbs.MRGrant{}, err
	}
	if err := s.begin(); err != nil {
		return verbs.MRGrant{}, err
	}
	defer s.commands.Done()
	memory, err := s.alloc(r.Length)
	if err != nil {
		return verbs.MRGrant{}, err
	}
	grant, err := s.register(r.PD, &mr{own: memory}, memory, r.Access)
	if err != nil {
		s.release(memory)
	}
	return grant, err
}

// RegMR implements verbs.Provider. If SessionConfig sets Memory, the card cannot access the
// program's own memory.
func (s *Session) RegMR(r verbs.RegMRRequest) (verbs.MRGrant, error) {
	if _, reached := s.config.Memory.(goMemory); !reached {
		return verbs.MRGrant{}, fmt.Errorf("%w: the card cannot access the program's memory; AllocMR makes memory that both can access", verbs.ErrUnsupported)
	}
	if err := checkMR(len(r.Memory), r.Access); err != nil {
		return verbs.MRGrant{}, err
	}
	return s.register(r.PD, &mr{}, r.Memory, r.Access)
}

func checkMR(length int, access verbs.AccessFlags) error {
	if length <= 0 || length > maxMRSize {
		return fmt.Errorf("%w: a memory region has 1 to %d bytes", verbs.ErrInvalid, maxMRSize)
	}
	if unknown := access &^ verbs.AccessLocalWrite; unknown != 0 {
		return fmt.Errorf("%w: access flags 0x%x: remote access needs connected services", verbs.ErrUnsupported, uint32(unknown))
	}
	return nil
}

// register makes a memory region.
func (s *Session) register(pdHandle verbs.Handle, m *mr, memory []byte, access verbs.AccessFlags) (grant verbs.MRGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	if m.pd, err = s.pds.get(pdHandle); err != nil {
		return grant, err
	}
	handle, err := s.mrs.add(m)
	if err != nil {
		return grant, err
	}
	entry := &datapath.MR{
		LKey: datapath.LKeyFor(uint32(handle)), PD: m.pd.number,
		Memory: memory, Write: access&verbs.AccessLocalWrite != 0,
	}
	s.card.engine.Do(func() { s.entry.SetMR(uint32(handle), entry) })
	m.pd.users++
	return verbs.MRGrant{MR: handle, LKey: entry.LKey, Memory: memory}, nil
}

// DeregMR implements verbs.Provider. When it returns, no request that uses the region is running;
// later ones fail.
func (s *Session) DeregMR(r verbs.DeregMRRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	m, err := s.mrs.get(r.MR)
	if err != nil {
		return err
	}
	s.card.engine.Do(func() { s.entry.SetMR(uint32(r.MR), nil) })
	s.mrs.remove(r.MR)
	m.pd.users--
	s.release(m.own)
	return nil
}
