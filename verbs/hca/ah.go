//go:build linux

package hca

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// ah is an address handle, with its attributes and its path.
type ah struct {
	pd     *pd
	attr   verbs.AHAttr
	source wire.GID
	path   *paths.Path
}

// createAH carries out provider.CreateAH. It holds no lock while it waits for a neighbour.
func createAH(ctx context.Context, s *Session, r provider.CreateAHRequest) (grant provider.CreateAHGrant, err error) {
	if err := checkAH(&r.Attr); err != nil {
		return grant, err
	}
	a, err := newAH(s, &r.Attr, func() (*pd, error) { return s.pds.Get(r.PD) })
	if err != nil {
		return grant, err
	}
	defer s.life.work.Done()
	if grant.AH, err = openAH(ctx, s, a, r.NoWait); err != nil {
		a.abandon(s)
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
		return fmt.Errorf("%w: service level %d, at most 7", verbs.ErrInvalid, attr.SL)
	case attr.GRH.FlowLabel > 0xFFFFF:
		return fmt.Errorf("%w: flow label 0x%x has more than 20 bits", verbs.ErrInvalid, attr.GRH.FlowLabel)
	}
	return checkPort(attr.Port)
}

// newAH starts a handle, or one that replaces another; find gives its PD, under card.mu. PD and card
// stay in use until the handle is abandoned or destroyed.
func newAH(s *Session, attr *verbs.AHAttr, find func() (*pd, error)) (*ah, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	card := s.card
	defer card.mu.Unlock()
	p, err := find()
	if err != nil {
		return nil, err
	}
	port := card.port()
	source, err := port.gids.get(attr.GRH.SGIDIndex)
	if err != nil {
		return nil, err
	}
	if dest := attr.GRH.DGID; source.IsIPv4() != dest.IsIPv4() {
		return nil, fmt.Errorf("%w: source GID %v (index %d) and destination %v differ in their IP version; choose another SGIDIndex%s",
			verbs.ErrInvalid, source, attr.GRH.SGIDIndex, dest, port.gids.hint(dest.IsIPv4()))
	}
	p.users++
	s.life.work.Add(1)
	return &ah{pd: p, attr: *attr, source: source}, nil
}

// openAH finds the path, waits for its neighbour unless noWait is set, and adds the handle.
func openAH(ctx context.Context, s *Session, a *ah, noWait bool) (_ provider.Handle, err error) {
	if err := a.findPath(ctx, s, noWait); err != nil {
		return 0, err
	}
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.card.mu.Unlock()
	if noWait && a.path.Err() != nil {
		return 0, a.path.Err()
	}
	handle, err := s.ahs.Add(a)
	if err != nil {
		return 0, err
	}
	a.show(s, handle)
	return handle, nil
}

// findPath finds the handle's path, and waits for its neighbour unless noWait is set.
func (a *ah) findPath(ctx context.Context, s *Session, noWait bool) (err error) {
	ends := paths.Ends{Source: a.source, Dest: a.attr.GRH.DGID}
	if noWait {
		a.path, err = s.card.paths.Take(ends, s)
		return err
	}
	if a.path, err = s.card.paths.TakeInTurn(ctx, ends, s); err != nil {
		return err
	}
	return s.card.paths.Await(ctx, a.path, s)
}

// show has the engine use the handle as it is now, from the next round on. The caller holds card.mu.
func (a *ah) show(s *Session, handle provider.Handle) {
	entry := a.entry(s.card)
	s.entry.Engine().Do(func() { s.entry.SetAH(uint32(handle), entry) })
}

// entry makes the handle's entry in the engine's tables.
func (a *ah) entry(card *Card) *datapath.AH {
	route := a.attr.GRH
	return &datapath.AH{
		PD: a.pd.number, Path: a.path.Entry(), Group: route.DGID.IsMulticast(), Dest: route.DGID,
		Template: wire.NewTemplate(wire.Path{
			VLAN: card.vlan, Priority: a.attr.SL, SourcePorts: card.port().SourcePorts, Source: a.source, Dest: route.DGID,
			TrafficClass: route.TrafficClass, HopLimit: route.HopLimit, FlowLabel: route.FlowLabel, Unsealed: card.port().InMemory,
		}),
	}
}

// abandon releases the path and the PD of a handle that could not be created, or that was destroyed.
func (a *ah) abandon(s *Session) {
	if a.path != nil {
		s.card.paths.Leave(a.path, s)
	}
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	a.pd.users--
}

// destroyAH carries out provider.DestroyAH.
func destroyAH(s *Session, r provider.DestroyAHRequest) error {
	s.entry.Engine().SendPosted(s.entry)
	a, err := takeAH(s, r.AH)
	if err != nil {
		return err
	}
	defer s.life.work.Done()
	a.abandon(s)
	return nil
}

// takeAH removes a handle from the engine and from the session's table. The card stays open until
// life.work.Done.
func takeAH(s *Session, handle provider.Handle) (*ah, error) {
	if err := s.enterToFree(); err != nil {
		return nil, err
	}
	defer s.card.mu.Unlock()
	a, err := s.ahs.Get(handle)
	if err != nil {
		return nil, err
	}
	s.entry.Engine().Do(func() { s.entry.SetAH(uint32(handle), nil) })
	s.ahs.Remove(handle)
	s.life.work.Add(1)
	return a, nil
}

// modifyAH carries out provider.ModifyAH. The new address is made ready aside, as for a new handle, and
// takes the old one's place between two bursts.
func modifyAH(ctx context.Context, s *Session, r provider.ModifyAHRequest) error {
	if err := checkAH(&r.Attr); err != nil {
		return err
	}
	next, err := newAH(s, &r.Attr, func() (*pd, error) {
		a, err := s.ahs.Get(r.AH)
		if err != nil {
			return nil, err
		}
		return a.pd, nil
	})
	if err != nil {
		return err
	}
	defer s.life.work.Done()
	if err = next.findPath(ctx, s, false); err == nil {
		err = replaceAH(s, r.AH, next)
	}
	next.abandon(s)
	return network.HostError(err)
}

// replaceAH exchanges a handle, which may have been destroyed meanwhile, with what replaces it: next
// is the old one afterwards.
func replaceAH(s *Session, handle provider.Handle, next *ah) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	a, err := s.ahs.Get(handle)
	if err != nil {
		return err
	}
	*a, *next = *next, *a
	a.show(s, handle)
	return nil
}

// queryAH carries out provider.QueryAH.
func queryAH(s *Session, r provider.QueryAHRequest) (grant provider.QueryAHGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	a, err := s.ahs.Get(r.AH)
	if err != nil {
		return grant, err
	}
	grant.Attr = a.attr
	if grant.Attr.GRH.HopLimit == 0 {
		grant.Attr.GRH.HopLimit = wire.DefaultHopLimit
	}
	return grant, nil
}
