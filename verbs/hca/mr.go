//go:build linux

package hca

import (
	"fmt"
	"math"

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

// allocPD carries out provider.AllocPD.
func allocPD(s *Session) (grant provider.AllocPDGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	s.lastPD++
	p := &pd{number: s.lastPD}
	p.handle, err = s.pds.Add(p)
	grant.PD = p.handle
	return grant, err
}

// deallocPD carries out provider.DeallocPD.
func deallocPD(s *Session, r provider.DeallocPDRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	p, err := s.pds.Get(r.PD)
	if err != nil {
		return err
	}
	if p.users > 0 {
		return fmt.Errorf("%w: the PD has %d objects (MR, MW, QP, SRQ, AH); close them first", verbs.ErrBusy, p.users)
	}
	s.pds.Remove(r.PD)
	return nil
}

// mr is a memory region.
type mr struct {
	pd     *pd        // that of coherent memory is nobody's
	key    verbs.LKey // the first one, whose low 8 bits requests replace if it is fast
	entry  *region.MR
	own    []byte // the session's memory; nil for the caller's, and for device memory
	unmap  func() // of memory that is mapped for the region; nil for other memory
	dm     *dm    // of device memory
	null   bool   // it has no memory; see AllocNullMR
	fast   bool   // own is its list; see AllocFastMR
	signed bool   // it is fast, and has signatures
	memory []byte
	iova   uint64
	access verbs.AccessFlags
}

// allocMR carries out provider.AllocMR.
func allocMR(s *Session, r provider.AllocMRRequest) (provider.MRGrant, error) {
	if r.Length > maxAlloc {
		return provider.MRGrant{}, fmt.Errorf("%w: AllocMR makes regions of at most %d bytes; larger ones are of the program's own memory, or several", verbs.ErrInvalid, maxAlloc)
	}
	if err := checkMR(r.Length, r.IOVA, r.Access); err != nil {
		return provider.MRGrant{}, err
	}
	if err := s.begin(); err != nil {
		return provider.MRGrant{}, err
	}
	defer s.life.work.Done()
	memory, err := s.alloc(r.Length)
	if err != nil {
		return provider.MRGrant{}, err
	}
	grant, err := registerMR(s, r.PD, &mr{own: memory, memory: memory, iova: r.IOVA, access: r.Access})
	if err != nil {
		s.release(memory)
	}
	return grant, err
}

// regMR carries out provider.RegMR. If SessionConfig sets Memory, the card cannot access the
// program's own memory.
func regMR(s *Session, r provider.RegMRRequest) (provider.MRGrant, error) {
	if err := checkReach(s); err != nil {
		return provider.MRGrant{}, err
	}
	if err := checkMR(len(r.Memory), r.IOVA, r.Access); err != nil {
		return provider.MRGrant{}, err
	}
	return registerMR(s, r.PD, &mr{memory: r.Memory, iova: r.IOVA, access: r.Access})
}

// checkReach refuses memory of the program's own that the card cannot access.
func checkReach(s *Session) error {
	if _, reached := s.config.Memory.(goMemory); !reached {
		return fmt.Errorf("%w: the card cannot access the program's memory; AllocMR makes memory that both can access", verbs.ErrUnsupported)
	}
	return nil
}

func checkMR(length int, iova uint64, access verbs.AccessFlags) error {
	if length < 0 || length > maxMRSize {
		return fmt.Errorf("%w: a memory region has at most %d bytes", verbs.ErrInvalid, maxMRSize)
	}
	if iova > math.MaxUint64-uint64(length) {
		return fmt.Errorf("%w: a region of %d bytes at 0x%x does not end below 2^64", verbs.ErrInvalid, length, iova)
	}
	return checkAccess(iova, access)
}

const (
	knownAccess = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic | verbs.AccessMWBind |
		verbs.AccessZeroBased | verbs.AccessOnDemand | verbs.AccessHugeTLB | verbs.AccessFlushGlobal | verbs.AccessFlushPersistent
	supportedAccess = verbs.AccessLocalWrite | verbs.AccessZeroBased | verbs.AccessOnDemand | remoteAccess
	remoteAccess    = verbs.AccessRemoteRead | remoteChange | verbs.AccessMWBind
	remoteChange    = verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic
)

// checkAccess refuses access flags by libibverbs' rules, and those of what is not built.
func checkAccess(iova uint64, access verbs.AccessFlags) error {
	access &^= verbs.AccessOptionalRange
	switch {
	case access&^knownAccess != 0:
		return fmt.Errorf("%w: access flags 0x%x are unknown", verbs.ErrInvalid, uint32(access&^knownAccess))
	case access&remoteChange != 0 && access&verbs.AccessLocalWrite == 0:
		return fmt.Errorf("%w: remote writes and atomics need AccessLocalWrite too", verbs.ErrInvalid)
	case access&^supportedAccess != 0:
		return fmt.Errorf("%w: access flags 0x%x (%v): %s", verbs.ErrUnsupported, uint32(access&^supportedAccess), access&^supportedAccess, whyNoAccess(access))
	case access&verbs.AccessZeroBased != 0 && iova != 0:
		return fmt.Errorf("%w: a zero-based region with the base address 0x%x; leave out the flag or the address", verbs.ErrInvalid, iova)
	}
	return nil
}

func whyNoAccess(access verbs.AccessFlags) string {
	if access&verbs.AccessHugeTLB != 0 {
		return "pages come on demand as the kernel has them, huge or not"
	}
	return "there is no RDMA flush here"
}

// registerMR adds a memory region to the tables.
func registerMR(s *Session, pdHandle provider.Handle, m *mr) (grant provider.MRGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	if m.pd == nil {
		if m.pd, err = s.pds.Get(pdHandle); err != nil {
			return grant, err
		}
	}
	handle, err := s.keys.Add(&keyed{region: m})
	if err != nil {
		return grant, err
	}
	m.pd.users++
	s.entry.Engine().Do(func() {
		m.key = s.entry.DrawKey(randomKey)
		if m.fast {
			m.entry = region.NewFastMR(m.key, m.pd.number, m.own)
			if m.signed {
				m.entry = region.NewIntegrityMR(m.key, m.pd.number, m.own)
			}
			s.entry.SetFastMR(m.entry)
			return
		}
		m.entry = m.newEntry(m.key)
		s.entry.SetMR(m.entry)
	})
	return provider.MRGrant{MR: handle, LKey: m.key, Memory: m.memory}, nil
}

// newEntry makes the entry in the engine's tables of a region as it is now.
func (m *mr) newEntry(key verbs.LKey) *region.MR {
	return &region.MR{
		LKey: key, PD: m.pd.number,
		Base: m.iova, Memory: m.memory, Null: m.null, Write: m.access&verbs.AccessLocalWrite != 0, Remote: m.access & remoteAccess,
	}
}

// deregMR carries out provider.DeregMR. When it returns, no request that uses the region is running;
// later ones fail.
func deregMR(s *Session, r provider.DeregMRRequest) error {
	s.entry.Engine().SendPosted(s.entry)
	m, err := unregisterMR(s, r.MR)
	if err != nil {
		return err
	}
	m.free(s)
	return nil
}

// unregisterMR removes a region from the tables. The card does not access its memory any more.
func unregisterMR(s *Session, handle provider.Handle) (*mr, error) {
	if err := s.enterToFree(); err != nil {
		return nil, err
	}
	defer s.card.mu.Unlock()
	m, err := regionOf(s, handle)
	if err != nil {
		return nil, err
	}
	if err := m.changeUnbound(s, func() { s.entry.ClearKey(m.key) }); err != nil {
		return nil, err
	}
	s.keys.Remove(handle)
	m.pd.users--
	if m.dm != nil {
		m.dm.users--
	}
	return m, nil
}

// free releases the memory of a region that is unregistered. To unmap may take long, so no lock is held.
func (m *mr) free(s *Session) {
	s.release(m.own)
	if m.unmap != nil {
		m.unmap()
	}
}

const reregFlags = verbs.ReregChangeTranslation | verbs.ReregChangePD | verbs.ReregChangeAccess

// reregMR carries out provider.ReregMR. A request that the engine is executing uses the region as it was, and all later
// ones as it is then.
func reregMR(s *Session, r provider.ReregMRRequest) error {
	if err := checkRereg(s, &r); err != nil {
		return err
	}
	return rereg(s, &r, nil)
}

// rereg changes a region. unmap is of new memory, if that is mapped for the region; its old memory is freed.
func rereg(s *Session, r *provider.ReregMRRequest, unmap func()) error {
	was, err := exchangeMR(s, r, unmap)
	if err == nil && r.Flags&verbs.ReregChangeTranslation != 0 {
		was.free(s)
	}
	return err
}

// exchangeMR changes a region, and returns the region as it was.
func exchangeMR(s *Session, r *provider.ReregMRRequest, unmap func()) (was mr, err error) {
	if err := s.enter(); err != nil {
		return was, err
	}
	defer s.card.mu.Unlock()
	m, err := regionOf(s, r.MR)
	if err != nil {
		return was, err
	}
	if m.null || m.fast || m.pd.handle == 0 {
		return was, fmt.Errorf("%w: a null region, a fast one and coherent memory stay as they are", verbs.ErrInvalid)
	}
	next, err := m.changed(s, r, unmap)
	if err != nil {
		return was, err
	}
	next.entry = next.newEntry(m.key)
	if err := m.changeUnbound(s, func() { s.entry.SetMR(next.entry) }); err != nil {
		return was, err
	}
	m.pd.users--
	next.pd.users++
	was, *m = *m, next
	return was, nil
}

// checkRereg makes the checks that need only the request.
func checkRereg(s *Session, r *provider.ReregMRRequest) error {
	if err := checkReregFlags(r); err != nil || r.Flags&verbs.ReregChangeTranslation == 0 {
		return err
	}
	if err := checkReach(s); err != nil {
		return err
	}
	if len(r.Memory) == 0 {
		return fmt.Errorf("%w: ReregChangeTranslation to no memory", verbs.ErrInvalid)
	}
	return checkMR(len(r.Memory), r.IOVA, r.Access)
}

func checkReregFlags(r *provider.ReregMRRequest) error {
	switch {
	case r.Flags == 0 || r.Flags&^reregFlags != 0:
		return fmt.Errorf("%w: flags 0x%x; there are ReregChangeTranslation, ReregChangePD and ReregChangeAccess", verbs.ErrInvalid, uint32(r.Flags))
	case r.Access != 0 && r.Flags&verbs.ReregChangeAccess == 0:
		return fmt.Errorf("%w: access flags without ReregChangeAccess; set it", verbs.ErrInvalid)
	}
	return nil
}

// changed returns the region as a request changes it; unmap is of new memory. The caller holds card.mu.
func (m mr) changed(s *Session, r *provider.ReregMRRequest, unmap func()) (_ mr, err error) {
	if r.Flags&verbs.ReregChangePD != 0 {
		if m.pd, err = s.pds.Get(r.PD); err != nil {
			return m, err
		}
	}
	if r.Flags&verbs.ReregChangeTranslation != 0 {
		if m.dm != nil {
			return m, fmt.Errorf("%w: a region of device memory keeps it", verbs.ErrInvalid)
		}
		m.own, m.unmap, m.memory, m.iova = nil, unmap, r.Memory, r.IOVA
	}
	if r.Flags&verbs.ReregChangeAccess != 0 {
		m.access = r.Access
	}
	return m, checkAccess(m.iova, m.access)
}

// allocNullMR carries out provider.AllocNullMR. Peers may do nothing with the region.
func allocNullMR(s *Session, r provider.AllocNullMRRequest) (provider.MRGrant, error) {
	return registerMR(s, r.PD, &mr{null: true, access: verbs.AccessLocalWrite})
}
