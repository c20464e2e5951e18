//go:build linux

package hca

import (
	"context"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/provider"
)

// ModifyAH implements provider.Provider. The new address is made ready aside, as for a new handle, and
// takes the old one's place between two bursts.
func (s *Session) ModifyAH(ctx context.Context, r provider.ModifyAHRequest) error {
	if err := checkAH(&r.Attr); err != nil {
		return err
	}
	next, err := s.newAH(&r.Attr, func() (*pd, error) {
		a, err := s.ahs.get(r.AH)
		if err != nil {
			return nil, err
		}
		return a.pd, nil
	})
	if err != nil {
		return err
	}
	defer s.commands.Done()
	if err = s.findPath(ctx, next, false); err == nil {
		err = s.replaceAH(r.AH, next)
	}
	s.abandon(next)
	return network.HostError(err)
}

// replaceAH exchanges a handle, which may have been destroyed meanwhile, with what replaces it: next
// is the old one afterwards.
func (s *Session) replaceAH(handle provider.Handle, next *ah) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	a, err := s.ahs.get(handle)
	if err != nil {
		return err
	}
	*a, *next = *next, *a
	s.showAH(handle, a)
	return nil
}

// QueryAH implements provider.Provider.
func (s *Session) QueryAH(r provider.QueryAHRequest) (grant provider.QueryAHGrant, err error) {
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.card.mu.Unlock()
	a, err := s.ahs.get(r.AH)
	if err != nil {
		return grant, err
	}
	grant.Attr = a.attr
	if grant.Attr.GRH.HopLimit == 0 {
		grant.Attr.GRH.HopLimit = wire.DefaultHopLimit
	}
	return grant, nil
}
