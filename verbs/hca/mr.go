// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/provider"
)

// mr is a memory region.
type mr struct {
	pd     *pd        // for coherent memory a PD without other objects
	key    verbs.LKey // the first key; if the region is fast, requests replace its low 8 bits
	entry  *region.MR
	own    []byte // memory of the session; nil for memory of the program and for device memory
	unmap  func() // unmaps memory that is mapped for the region; nil for other memory
	dm     *dm    // the region's device memory, or nil
	null   bool   // it has no memory; see AllocNullMR
	fast   bool   // own holds its list of entries; see AllocFastMR
	signed bool   // it is fast and has signatures
	memory []byte
	iova   uint64
	access verbs.AccessFlags
}

// keyed is the object that a key names: a memory region or a memory window. Both are in one table, so that keys are
// unique.
type keyed struct {
	region *mr
	window *mw
}

// mw is a memory window. The engine has its binding.
type mw struct {
	pd  *pd
	key verbs.RKey // each bind may replace its low 8 bits
}

// mrs holds the memory regions and memory windows of a session.
type mrs struct {
	handles.Table[keyed]
	owner *owner
	pds   *pds
	dms   *dms
}

// allocate carries out provider.AllocMR.
func (t *mrs) allocate(r provider.AllocMRRequest) (provider.MRGrant, error) {
	if r.Length > maxAlloc {
		return provider.MRGrant{}, fmt.Errorf("%w: AllocMR can register at most %d bytes; register memory of the program, or use several regions", verbs.ErrInvalid, maxAlloc)
	}
	if err := checkMR(r.Length, r.IOVA, r.Access); err != nil {
		return provider.MRGrant{}, err
	}
	if err := t.owner.begin(); err != nil {
		return provider.MRGrant{}, err
	}
	defer t.owner.finish()
	memory, err := t.owner.alloc(r.Length)
	if err != nil {
		return provider.MRGrant{}, err
	}
	grant, err := t.register(r.PD, &mr{own: memory, memory: memory, iova: r.IOVA, access: r.Access})
	if err != nil {
		t.owner.release(memory)
	}
	return grant, err
}

// reg carries out provider.RegMR. If SessionConfig sets Memory, the card cannot access the program's own memory.
func (t *mrs) reg(r provider.RegMRRequest) (provider.MRGrant, error) {
	if err := t.checkReach(); err != nil {
		return provider.MRGrant{}, err
	}
	if err := checkMR(len(r.Memory), r.IOVA, r.Access); err != nil {
		return provider.MRGrant{}, err
	}
	return t.register(r.PD, &mr{memory: r.Memory, iova: r.IOVA, access: r.Access})
}

// checkReach returns an error if the card cannot access the program's own memory.
func (t *mrs) checkReach() error {
	if _, reached := t.owner.config.Memory.(goMemory); !reached {
		return fmt.Errorf("%w: the card cannot access the program's memory; use AllocMR, whose memory both can access", verbs.ErrUnsupported)
	}
	return nil
}

func checkMR(length int, iova uint64, access verbs.AccessFlags) error {
	if length < 0 || length > maxMRSize {
		return fmt.Errorf("%w: a memory region can have at most %d bytes", verbs.ErrInvalid, maxMRSize)
	}
	if iova > math.MaxUint64-uint64(length) {
		return fmt.Errorf("%w: a region of %d bytes at 0x%x extends beyond 2^64", verbs.ErrInvalid, length, iova)
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

// checkAccess checks access flags by the rules of libibverbs, and rejects unsupported flags.
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
		return fmt.Errorf("%w: a zero-based region cannot have the base address 0x%x; omit the flag or the address", verbs.ErrInvalid, iova)
	}
	return nil
}

func whyNoAccess(access verbs.AccessFlags) string {
	if access&verbs.AccessHugeTLB != 0 {
		return "pages come on demand, and the kernel decides whether they are huge or not"
	}
	return "there is no RDMA flush"
}

// register adds a memory region to the tables.
func (t *mrs) register(pdHandle provider.Handle, m *mr) (grant provider.MRGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	if m.pd == nil {
		if m.pd, err = t.pds.Get(pdHandle); err != nil {
			return grant, err
		}
	}
	handle, err := t.Add(&keyed{region: m})
	if err != nil {
		return grant, err
	}
	m.pd.users++
	t.owner.engine().Do(func() {
		m.key = t.owner.entry.DrawKey(randomKey)
		if m.fast {
			m.entry = region.NewFastMR(m.key, m.pd.number, m.own)
			if m.signed {
				m.entry = region.NewIntegrityMR(m.key, m.pd.number, m.own)
			}
			t.owner.entry.SetFastMR(m.entry)
			return
		}
		m.entry = m.newEntry(m.key)
		t.owner.entry.SetMR(m.entry)
	})
	return provider.MRGrant{MR: handle, LKey: m.key, Memory: m.memory}, nil
}

// newEntry returns the entry in the engine's tables for the current state of a region.
func (m *mr) newEntry(key verbs.LKey) *region.MR {
	return &region.MR{
		LKey: key, PD: m.pd.number,
		Base: m.iova, Memory: m.memory, Null: m.null, Write: m.access&verbs.AccessLocalWrite != 0, Remote: m.access & remoteAccess,
	}
}

// dereg carries out provider.DeregMR. When it returns, no request that uses the region is in progress; later requests
// fail.
func (t *mrs) dereg(r provider.DeregMRRequest) error {
	t.owner.engine().SendPosted(t.owner.entry)
	m, err := t.unregister(r.MR)
	if err != nil {
		return err
	}
	m.free(t.owner)
	return nil
}

// unregister removes a region from the tables. Afterwards the card does not access its memory.
func (t *mrs) unregister(handle provider.Handle) (*mr, error) {
	if err := t.owner.enterToFree(); err != nil {
		return nil, err
	}
	defer t.owner.leave()
	m, err := t.region(handle)
	if err != nil {
		return nil, err
	}
	if err := m.changeUnbound(t.owner.engine(), func() { t.owner.entry.ClearKey(m.key) }); err != nil {
		return nil, err
	}
	t.Remove(handle)
	m.pd.users--
	if m.dm != nil {
		m.dm.users--
	}
	return m, nil
}

// free releases the memory of an unregistered region. Unmapping may take long, so no lock is held.
func (m *mr) free(o *owner) {
	o.release(m.own)
	if m.unmap != nil {
		m.unmap()
	}
}

// allocNull carries out provider.AllocNullMR. Peers cannot access the region.
func (t *mrs) allocNull(r provider.AllocNullMRRequest) (provider.MRGrant, error) {
	return t.register(r.PD, &mr{null: true, access: verbs.AccessLocalWrite})
}

// describe describes the object for Session.Objects.
func (m *mr) describe(handle provider.Handle) Object {
	length := uint64(len(m.memory))
	if m.fast { // memory is its list of entries
		length = 0
	}
	return Object{
		Handle: handle, Number: uint32(m.key), PD: m.pd.handle,
		Address: m.iova, Length: length, Access: m.access,
	}
}

// releaseAll releases the memory of all regions, at the end of the session.
func (t *mrs) releaseAll() {
	for _, k := range t.All() {
		if k.region != nil {
			k.region.free(t.owner)
		}
	}
}

// region returns a memory region by its handle.
func (t *mrs) region(handle provider.Handle) (*mr, error) {
	k, err := t.Get(handle)
	if err == nil && k.region == nil {
		err = fmt.Errorf("%w: the handle is a memory window, not an MR", verbs.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	return k.region, nil
}

// changeUnbound changes the region between two rounds. It fails if memory windows or fast regions use the region.
func (m *mr) changeUnbound(e *datapath.Engine, change func()) (err error) {
	e.Do(func() {
		if windows := m.entry.Windows(); windows > 0 {
			err = fmt.Errorf("%w: memory windows that are bound to the region: %d; unbind, invalidate or close them first", verbs.ErrBusy, windows)
			return
		}
		if pieces := m.entry.Pieces(); pieces > 0 {
			err = fmt.Errorf("%w: %d pieces of the region are registered in fast regions; invalidate or close those first", verbs.ErrBusy, pieces)
			return
		}
		change()
	})
	return err
}

// randomKey returns a random number for a key, which peers cannot guess.
func randomKey() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint32(b[:])
}

// regDM carries out provider.RegDMMR.
func (t *mrs) regDM(r provider.RegDMMRRequest) (grant provider.MRGrant, err error) {
	if err := checkMR(r.Length, 0, r.Access); err != nil {
		return grant, err
	}
	d, err := t.dms.use(&r)
	if err != nil {
		return grant, err
	}
	if grant, err = t.register(r.PD, &mr{dm: d, memory: d.memory[r.Offset:][:r.Length:r.Length], access: r.Access}); err != nil {
		t.owner.device.locked(func() { d.users-- })
	}
	return grant, err
}
