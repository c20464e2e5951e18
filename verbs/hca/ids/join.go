// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// idJoin is a membership that an id has requested. It stays in the id's list until it fails or is left.
type idJoin struct {
	id         *ID
	group      netip.Addr
	context    uint64
	membership provider.Handle // 0 until the host has joined
	left       bool            // left before that
}

// JoinID carries out provider.JoinID.
func (s *Session) JoinID(r provider.JoinIDRequest) error {
	join, err := s.config.Groups.Prepare(provider.JoinMulticastRequest{Group: r.Group, State: r.State})
	if err != nil {
		return err
	}
	j, err := s.startJoin(&r, join)
	if err != nil {
		return err
	}
	go func() {
		defer j.id.endWork()
		grant, err := join.Finish()
		if !j.finish(grant, err) && err == nil {
			_ = s.config.Groups.Leave(provider.LeaveMulticastRequest{Membership: grant.Membership})
		}
	}()
	return nil
}

// startJoin finds the id, and reserves the membership.
func (s *Session) startJoin(r *provider.JoinIDRequest, join Join) (j *idJoin, err error) {
	err = s.withID(r.ID, func(i *ID) error {
		if err := i.mayJoin(); err != nil {
			return err
		}
		if err = join.Reserve(); err != nil {
			return err
		}
		j = &idJoin{id: i, group: r.Group.Unmap().WithZone(""), context: r.Context}
		i.joins = append(i.joins, j)
		i.beginWork()
		return nil
	})
	return j, err
}

func (i *ID) mayJoin() error {
	err := errors.Join(i.in("join a group with", idBound, idAddrResolved), i.room())
	switch {
	case err != nil:
	case i.kind != verbs.QPTypeUD:
		err = fmt.Errorf("%w: port space %v has no groups; use UDP", verbs.ErrInvalid, i.space)
	case !i.onDevice():
		err = fmt.Errorf("%w: the id is bound to all addresses, and so to no device: bind it to one address, or resolve one", verbs.ErrInvalid)
	}
	return err
}

// finish reports the result of a join; it returns false if the membership is no longer wanted.
func (j *idJoin) finish(grant provider.JoinMulticastGrant, failed error) bool {
	i, s := j.id, j.id.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if i.state == idDestroyed || j.left {
		return false
	}
	if failed != nil {
		i.joins = slices.DeleteFunc(i.joins, func(other *idJoin) bool { return other == j })
		i.put(&idEvent{CMEvent: provider.CMEvent{Type: ib.CMEventMulticastError, Context: j.context, Status: statusOf(failed)}})
		return false
	}
	j.membership = grant.Membership
	source := wire.GIDFromAddr(i.source.Addr())
	if source.IsIPv4() != grant.MGID.IsIPv4() || i.source.Addr().IsLoopback() {
		source = grant.SGID
	}
	i.put(&idEvent{join: j, CMEvent: provider.CMEvent{
		Type: ib.CMEventMulticastJoin, Context: j.context,
		AH: s.manager.Card.AHAttr(paths.Ends{Source: source, Dest: grant.MGID}, i.tos), ConnParam: ib.ConnParam{QPN: verbs.MulticastQPN, QKey: i.qkey},
	}})
	return true
}

// LeaveID carries out provider.LeaveID.
func (s *Session) LeaveID(r provider.LeaveIDRequest) (grant provider.LeaveIDGrant, err error) {
	j, channel, err := s.takeIDJoin(&r)
	if err != nil {
		return grant, err
	}
	defer s.work.Done()
	channel.awaitTaken(&s.mu)
	j.leave()
	return provider.LeaveIDGrant{Context: j.context}, nil
}

// takeIDJoin removes the last join of a group from an id, with its event, and also returns the event's channel. The
// session waits for work.Done.
func (s *Session) takeIDJoin(r *provider.LeaveIDRequest) (*idJoin, *Channel, error) {
	if err := s.enterToFree(); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	i, err := s.ids.Get(r.ID)
	if err != nil {
		return nil, nil, err
	}
	group := r.Group.Unmap().WithZone("")
	for at, j := range slices.Backward(i.joins) {
		if j.group != group {
			continue
		}
		i.joins = slices.Delete(i.joins, at, at+1)
		i.forgetJoin(j)
		j.left = true
		s.work.Add(1)
		return j, i.channel, nil
	}
	return nil, nil, fmt.Errorf("%w: the id has not joined %v", verbs.ErrAddrNotAvail, r.Group)
}

// forgetJoin removes the event of a join, if it is queued.
func (i *ID) forgetJoin(j *idJoin) {
	for at := i.events.Front(); at != nil; at = at.Next() {
		if e := at.Value.(*idEvent); e.join == j {
			i.forget(e)
			i.channel.settle()
			return
		}
	}
}

// leave ends the membership, unless the host has not joined yet: then JoinID's goroutine leaves.
func (j *idJoin) leave() {
	s := j.id.session
	s.mu.Lock()
	membership := j.membership
	s.mu.Unlock()
	if membership != 0 {
		_ = s.config.Groups.Leave(provider.LeaveMulticastRequest{Membership: membership}) // it fails if the program has left by the membership's handle
	}
}
