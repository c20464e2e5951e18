package hca

import (
	"context"
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
)

// ah is an address handle: what it was made with, and its path.
type ah struct {
	pd     *pd
	attr   verbs.AHAttr
	source wire.GID
	path   *path
}

// CreateAH implements verbs.Provider. It holds no lock while it waits for a neighbour.
func (d *Device) CreateAH(ctx context.Context, c verbs.AHCommand) (verbs.Handle, error) {
	if err := checkAH(&c.Attr); err != nil {
		return 0, err
	}
	a, err := d.newAH(c)
	if err != nil {
		return 0, err
	}
	defer d.others.Done()
	handle, err := d.openAH(ctx, a, c.NoWait)
	if err != nil {
		d.abandon(a)
	}
	return handle, err
}

func checkAH(attr *verbs.AHAttr) error {
	dest := attr.GRH.DGID
	switch {
	case dest.IsZero():
		return fmt.Errorf("%w: no destination GID", verbs.ErrInvalid)
	case mcast.CheckScope(dest) != nil:
		return mcast.CheckScope(dest)
	case attr.GRH.FlowLabel > 0xFFFFF:
		return fmt.Errorf("%w: flow label 0x%x has more than 20 bits", verbs.ErrInvalid, attr.GRH.FlowLabel)
	}
	return checkPort(attr.Port)
}

// newAH checks what the handle refers to. The PD and the device stay until the handle is
// abandoned, or destroyed.
func (d *Device) newAH(c verbs.AHCommand) (*ah, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	p, err := d.pds.get(c.PD)
	if err != nil {
		return nil, err
	}
	source, err := d.gids.get(c.Attr.GRH.SGIDIndex)
	if err != nil {
		return nil, err
	}
	if dest := c.Attr.GRH.DGID; source.IsIPv4() != dest.IsIPv4() {
		return nil, fmt.Errorf("%w: source GID %v (index %d) and destination %v are not of one IP version; choose another SGIDIndex%s",
			verbs.ErrInvalid, source, c.Attr.GRH.SGIDIndex, dest, d.gids.hint(dest.IsIPv4()))
	}
	p.users++
	d.others.Add(1)
	return &ah{pd: p, attr: c.Attr, source: source}, nil
}

// openAH finds the path, waits for its neighbour unless it is not to, and makes the handle known.
func (d *Device) openAH(ctx context.Context, a *ah, noWait bool) (_ verbs.Handle, err error) {
	if a.path, err = d.takePath(pair{a.source, a.attr.GRH.DGID}); err != nil {
		return 0, err
	}
	if !noWait {
		if err := d.awaitPath(ctx, a.path); err != nil {
			return 0, err
		}
	}
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	if noWait && a.path.why != nil {
		return 0, a.path.why
	}
	handle, err := d.ahs.add(a)
	if err != nil {
		return 0, err
	}
	hot := a.hot(d.vlan)
	d.engine.Do(func() { d.engine.SetAH(uint32(handle), hot) })
	return handle, nil
}

// hot is the handle as the engine sees it.
func (a *ah) hot(vlan uint16) *datapath.AH {
	route := a.attr.GRH
	return &datapath.AH{
		PD: a.pd.number, Path: a.path.hot, Group: route.DGID.IsMulticast(), Dest: route.DGID,
		Template: wire.NewTemplate(wire.Path{
			VLAN: vlan, Source: a.source, Dest: route.DGID,
			TrafficClass: route.TrafficClass, HopLimit: route.HopLimit, FlowLabel: route.FlowLabel,
		}),
	}
}

// abandon gives back what a handle holds that will not be, or is no more.
func (d *Device) abandon(a *ah) {
	if a.path != nil {
		d.leavePath(a.path)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a.pd.users--
}

// DestroyAH implements verbs.Provider.
func (d *Device) DestroyAH(handle verbs.Handle) error {
	if err := d.enterToFree(); err != nil {
		return err
	}
	a, err := d.ahs.get(handle)
	if err == nil {
		d.engine.Do(func() { d.engine.SetAH(uint32(handle), nil) })
		d.ahs.remove(handle)
		d.others.Add(1)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	defer d.others.Done()
	d.abandon(a)
	return nil
}
