//go:build linux

package hca

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// joined is a membership of a group. The host is a member only for full ones.
type joined struct {
	group netip.Addr
	full  bool // it receives
	done  bool // the host has joined; until then nobody knows the membership's handle
}

// joinMulticast carries out provider.JoinMulticast. It does not hold the card's lock while it waits for the
// kernel to join.
func joinMulticast(s *Session, r provider.JoinMulticastRequest) (grant provider.JoinMulticastGrant, err error) {
	join, err := prepareJoin(s, r)
	if err != nil {
		return grant, err
	}
	if err := join.Reserve(); err != nil {
		return grant, err
	}
	return join.Finish()
}

// joining is a membership on its way: ids.Join.
type joining struct {
	session *Session
	joined  *joined
	mgid    wire.GID
	handle  provider.Handle
}

func prepareJoin(s *Session, r provider.JoinMulticastRequest) (*joining, error) {
	m, mgid, err := checkJoin(s, r)
	if err != nil {
		return nil, err
	}
	return &joining{session: s, joined: m, mgid: mgid}, nil
}

// Reserve counts a membership before the host joins, so that those that are on their way are limited
// too. The card stays open until Finish has returned.
func (j *joining) Reserve() (err error) {
	s := j.session
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	if j.handle, err = s.joins.Add(j.joined); err == nil {
		s.life.work.Add(1)
	}
	return err
}

// Finish has the host join. If that fails the membership is gone.
func (j *joining) Finish() (grant provider.JoinMulticastGrant, err error) {
	s, m := j.session, j.joined
	defer s.life.work.Done()
	source, err := sourceFor(s, m)
	if err == nil && m.full {
		err = network.HostError(s.card.host.Join(m.group))
	}
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	if err != nil {
		s.joins.Remove(j.handle)
		return grant, err
	}
	m.done = true
	return provider.JoinMulticastGrant{Membership: j.handle, MGID: j.mgid, SGID: source}, nil
}

func checkJoin(s *Session, r provider.JoinMulticastRequest) (*joined, wire.GID, error) {
	if r.State == 0 || r.State&^ring.AllJoinStates != 0 {
		return nil, wire.GID{}, fmt.Errorf("%w: join state 0x%x; at least one of %v, and nothing else", verbs.ErrInvalid, uint8(r.State), ring.AllJoinStates)
	}
	mgid, err := mcast.MGID(r.Group)
	if err != nil {
		return nil, mgid, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	if zone := r.Group.Zone(); zone != "" && zone != s.card.Name() {
		return nil, mgid, fmt.Errorf("%w: the group's zone is %s, but the device is on %s", verbs.ErrInvalid, zone, s.card.Name())
	}
	return &joined{group: r.Group.Unmap().WithZone(""), full: r.State.Receives()}, mgid, nil
}

// sourceFor finds the source address for messages to a group: a link-local one only if there is no
// other. A full member needs none, since it can still receive.
func sourceFor(s *Session, m *joined) (best wire.GID, err error) {
	if err := s.enter(); err != nil {
		return best, err
	}
	card := s.card
	defer card.mu.Unlock()
	best = card.port().gids.best(m.group.Is4())
	if best.IsZero() && !m.full {
		return best, fmt.Errorf("%w: %s has no address of the group's IP version to send from; ip address add gives it one", verbs.ErrNoGID, card.Name())
	}
	return best, nil
}

// leaveMulticast carries out provider.LeaveMulticast.
func leaveMulticast(s *Session, r provider.LeaveMulticastRequest) error {
	m, err := takeJoin(s, r.Membership)
	if err != nil {
		return err
	}
	defer s.life.work.Done()
	if !m.full {
		return nil
	}
	return network.HostError(s.card.host.Leave(m.group))
}

// takeJoin removes a membership from the session's table. The card stays open until life.work.Done.
func takeJoin(s *Session, handle provider.Handle) (*joined, error) {
	if err := s.enterToFree(); err != nil {
		return nil, err
	}
	defer s.card.mu.Unlock()
	m, err := s.joins.Get(handle)
	if err == nil && !m.done {
		err = fmt.Errorf("%w: no such membership", verbs.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	s.joins.Remove(handle)
	s.life.work.Add(1)
	return m, nil
}
