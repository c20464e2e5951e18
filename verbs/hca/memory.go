package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
)

// pd is a protection domain and how much was made from it.
type pd struct {
	number datapath.PD
	users  int
}

// mr is a memory region. Its lkey is made of its handle.
type mr struct {
	pd *pd
}

// AllocPD implements verbs.Provider.
func (d *Device) AllocPD() (verbs.Handle, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	d.lastPD++
	return d.pds.add(&pd{number: d.lastPD})
}

// DeallocPD implements verbs.Provider.
func (d *Device) DeallocPD(handle verbs.Handle) error {
	if err := d.enterToFree(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	p, err := d.pds.get(handle)
	if err != nil {
		return err
	}
	if p.users > 0 {
		return fmt.Errorf("%w: %d objects (MR, QP, AH) were made from the PD; close them first", verbs.ErrBusy, p.users)
	}
	d.pds.remove(handle)
	return nil
}

// AllocMR implements verbs.Provider. Embedded, it is Go memory.
func (d *Device) AllocMR(pd verbs.Handle, length int, access verbs.AccessFlags) (verbs.MRGrant, error) {
	if length <= 0 || length > maxMRSize {
		return verbs.MRGrant{}, fmt.Errorf("%w: a memory region has 1 to %d bytes", verbs.ErrInvalid, maxMRSize)
	}
	return d.RegMR(pd, ring.Alloc(length), access)
}

// RegMR implements verbs.Provider.
func (d *Device) RegMR(pdHandle verbs.Handle, memory []byte, access verbs.AccessFlags) (verbs.MRGrant, error) {
	if len(memory) == 0 || len(memory) > maxMRSize {
		return verbs.MRGrant{}, fmt.Errorf("%w: a memory region has 1 to %d bytes", verbs.ErrInvalid, maxMRSize)
	}
	if unknown := access &^ verbs.AccessLocalWrite; unknown != 0 {
		return verbs.MRGrant{}, fmt.Errorf("%w: access flags 0x%x: remote access needs connected services", verbs.ErrUnsupported, uint32(unknown))
	}
	if err := d.enter(); err != nil {
		return verbs.MRGrant{}, err
	}
	defer d.mu.Unlock()
	p, err := d.pds.get(pdHandle)
	if err != nil {
		return verbs.MRGrant{}, err
	}
	handle, err := d.mrs.add(&mr{pd: p})
	if err != nil {
		return verbs.MRGrant{}, err
	}
	hot := &datapath.MR{
		LKey: datapath.LKeyFor(uint32(handle)), PD: p.number,
		Memory: memory, Write: access&verbs.AccessLocalWrite != 0,
	}
	d.engine.Do(func() { d.engine.SetMR(uint32(handle), hot) })
	p.users++
	return verbs.MRGrant{Handle: handle, LKey: hot.LKey, Memory: memory}, nil
}

// DeregMR implements verbs.Provider. Requests that name the region and run later
// fail; none is running when it returns.
func (d *Device) DeregMR(handle verbs.Handle) error {
	if err := d.enterToFree(); err != nil {
		return err
	}
	defer d.mu.Unlock()
	m, err := d.mrs.get(handle)
	if err != nil {
		return err
	}
	d.engine.Do(func() { d.engine.SetMR(uint32(handle), nil) })
	d.mrs.remove(handle)
	m.pd.users--
	return nil
}
