// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// ah is an address handle with its attributes and its path.
type ah struct {
	owner  *owner // the owner of its path
	pd     *pd
	attr   verbs.AHAttr
	source wire.GID
	path   *paths.Path
}

// ahs holds the address handles of a session.
type ahs struct {
	handles.Table[ah]
	owner *owner
	pds   *pds
}

// create carries out provider.CreateAH. It holds no lock while it waits for a neighbour.
func (t *ahs) create(ctx context.Context, r provider.CreateAHRequest) (grant provider.CreateAHGrant, err error) {
	if err := checkAH(&r.Attr); err != nil {
		return grant, err
	}
	a, err := newAH(t.owner, &r.Attr, func() (*pd, error) { return t.pds.Get(r.PD) })
	if err != nil {
		return grant, err
	}
	defer t.owner.finish()
	if grant.AH, err = t.open(ctx, a, r.NoWait); err != nil {
		a.abandon()
	}
	return grant, network.HostError(err)
}

func checkAH(attr *verbs.AHAttr) error {
	dest := attr.GRH.DGID
	switch {
	case dest.IsZero():
		return fmt.Errorf("%w: no destination GID", verbs.ErrInvalid)
	case mcast.CheckScope(dest) != nil:
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, mcast.CheckScope(dest))
	case attr.SL > 7:
		return fmt.Errorf("%w: service level %d; it can be at most 7", verbs.ErrInvalid, attr.SL)
	case attr.GRH.FlowLabel > 0xFFFFF:
		return fmt.Errorf("%w: flow label 0x%x has more than 20 bits", verbs.ErrInvalid, attr.GRH.FlowLabel)
	}
	return checkPort(attr.Port)
}

// newAH prepares a new handle, or the replacement of one; find returns its PD and is called under card.mu. The PD and
// the card stay in use until the handle is abandoned or destroyed.
func newAH(o *owner, attr *verbs.AHAttr, find func() (*pd, error)) (*ah, error) {
	if err := o.enter(); err != nil {
		return nil, err
	}
	defer o.leave()
	p, err := find()
	if err != nil {
		return nil, err
	}
	gids := &o.device.port.Now().GIDs
	source, err := gids.Get(attr.GRH.SGIDIndex)
	if err != nil {
		return nil, err
	}
	if dest := attr.GRH.DGID; source.IsIPv4() != dest.IsIPv4() {
		return nil, fmt.Errorf("%w: source GID %v (index %d) and destination %v differ in their IP version; choose another SGIDIndex%s",
			verbs.ErrInvalid, source, attr.GRH.SGIDIndex, dest, gids.Hint(dest.IsIPv4()))
	}
	p.users++
	o.life.work.Add(1)
	return &ah{owner: o, pd: p, attr: *attr, source: source}, nil
}

// open finds the path, waits for its neighbour unless noWait is set, and adds the handle to the table.
func (t *ahs) open(ctx context.Context, a *ah, noWait bool) (_ provider.Handle, err error) {
	if err := a.findPath(ctx, noWait); err != nil {
		return 0, err
	}
	if err := t.owner.enter(); err != nil {
		return 0, err
	}
	defer t.owner.leave()
	if noWait && a.path.Err() != nil {
		return 0, a.path.Err()
	}
	handle, err := t.Add(a)
	if err != nil {
		return 0, err
	}
	a.show(handle)
	return handle, nil
}

// findPath acquires the handle's path and waits for its neighbour unless noWait is set.
func (a *ah) findPath(ctx context.Context, noWait bool) (err error) {
	o := a.owner
	ends := paths.Ends{Source: a.source, Dest: a.attr.GRH.DGID}
	if noWait {
		a.path, err = o.device.paths.Take(ends, o)
		return err
	}
	if a.path, err = o.device.paths.TakeInTurn(ctx, ends, o); err != nil {
		return err
	}
	return o.device.paths.Await(ctx, a.path, o)
}

// show publishes the current state of the handle to the engine, for the next round. The caller holds card.mu.
func (a *ah) show(handle provider.Handle) {
	o, entry := a.owner, a.engineEntry()
	o.engine().Do(func() { o.entry.SetAH(uint32(handle), entry) })
}

// engineEntry returns the handle's entry in the engine's tables.
func (a *ah) engineEntry() *datapath.AH {
	route, port := a.attr.GRH, a.owner.device.port
	now := port.Now()
	return &datapath.AH{
		PD: a.pd.number, Path: a.path.Entry(), Group: route.DGID.IsMulticast(), Dest: route.DGID,
		Template: wire.NewTemplate(wire.Path{
			VLAN: port.VLAN, Priority: a.attr.SL, SourcePorts: now.SourcePorts, Source: a.source, Dest: route.DGID,
			TrafficClass: route.TrafficClass, HopLimit: route.HopLimit, FlowLabel: route.FlowLabel, Unsealed: now.InMemory,
		}),
	}
}

// abandon releases the path and the PD of a handle that was not created or has been destroyed.
func (a *ah) abandon() {
	o := a.owner
	if a.path != nil {
		o.device.paths.Leave(a.path, o)
	}
	o.device.mu.Lock()
	defer o.leave()
	a.pd.users--
}

// destroy carries out provider.DestroyAH.
func (t *ahs) destroy(r provider.DestroyAHRequest) error {
	t.owner.engine().SendPosted(t.owner.entry)
	a, err := t.unlink(r.AH)
	if err != nil {
		return err
	}
	defer t.owner.finish()
	a.abandon()
	return nil
}

// unlink removes a handle from the engine and from the session's table. The card stays open until
// owner.finish.
func (t *ahs) unlink(handle provider.Handle) (*ah, error) {
	if err := t.owner.enterToFree(); err != nil {
		return nil, err
	}
	defer t.owner.leave()
	a, err := t.Get(handle)
	if err != nil {
		return nil, err
	}
	t.owner.engine().Do(func() { t.owner.entry.SetAH(uint32(handle), nil) })
	t.Remove(handle)
	t.owner.life.work.Add(1)
	return a, nil
}

// modify carries out provider.ModifyAH. The new address is prepared like that of a new handle, and replaces the old one
// between two bursts.
func (t *ahs) modify(ctx context.Context, r provider.ModifyAHRequest) (none provider.None, err error) {
	if err := checkAH(&r.Attr); err != nil {
		return none, err
	}
	next, err := newAH(t.owner, &r.Attr, func() (*pd, error) {
		a, err := t.Get(r.AH)
		if err != nil {
			return nil, err
		}
		return a.pd, nil
	})
	if err != nil {
		return none, err
	}
	defer t.owner.finish()
	if err = next.findPath(ctx, false); err == nil {
		err = t.replace(r.AH, next)
	}
	next.abandon()
	return none, network.HostError(err)
}

// replace swaps a handle, unless it was destroyed meanwhile, with next; afterwards next is the old handle.
func (t *ahs) replace(handle provider.Handle, next *ah) error {
	if err := t.owner.enter(); err != nil {
		return err
	}
	defer t.owner.leave()
	a, err := t.Get(handle)
	if err != nil {
		return err
	}
	*a, *next = *next, *a
	a.show(handle)
	return nil
}

// query carries out provider.QueryAH.
func (t *ahs) query(r provider.QueryAHRequest) (grant provider.QueryAHGrant, err error) {
	if err := t.owner.enter(); err != nil {
		return grant, err
	}
	defer t.owner.leave()
	a, err := t.Get(r.AH)
	if err != nil {
		return grant, err
	}
	grant.Attr = a.attr
	if grant.Attr.GRH.HopLimit == 0 {
		grant.Attr.GRH.HopLimit = wire.DefaultHopLimit
	}
	return grant, nil
}

// describe describes the object for Session.Objects.
func (a *ah) describe(handle provider.Handle) Object {
	return Object{
		Handle: handle, PD: a.pd.handle, Source: a.source, Dest: a.attr.GRH.DGID, Failed: a.path.Err() != nil,
	}
}
