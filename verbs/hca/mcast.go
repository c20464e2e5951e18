//go:build linux

package hca

import (
	"errors"
	"fmt"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// groupLimits are a card's limits of groups. The steering table has room for as many groups.
var groupLimits = mcast.Limits{Groups: 16384, QPsPerGroup: maxQP, Attachments: 1 << 18}

// groups are a card's groups, with the queue pairs that are attached to them.
type groups = mcast.Table[*datapath.QP]

// attachMcast carries out provider.AttachMcast. The engine has a group before XDP redirects its packets, and
// until XDP does not any more.
func attachMcast(s *Session, r provider.McastRequest) error {
	q, err := enterGroup(s, s.enter, r, (*qp).mayAttach)
	if err != nil {
		return err
	}
	card, mgid := s.card, r.MGID
	defer card.mu.Unlock()
	if _, again := q.groups[mgid]; !again {
		if err := takeAttachment(s); err != nil {
			return err
		}
	}
	isNew := card.groups.Members(mgid) == nil
	if isNew {
		if err := admitGroup(s); err != nil {
			giveAttachment(s)
			return err
		}
	}
	if err := card.groups.Add(mcast.NewGroup[*datapath.QP](mgid, r.MLID), q.entry); err != nil && !errors.Is(err, mcast.ErrGroupExists) {
		return q.refuseAttachment(s, mgid, err)
	}
	q.groups[mgid] = r.MLID
	card.showGroup(mgid)
	if !isNew {
		return nil
	}
	if err := card.host.AddGroup(mgid.Addr()); err != nil {
		return network.HostError(errors.Join(err, q.detach(s, mgid, r.MLID)))
	}
	return nil
}

// takeAttachment counts a new attachment. The caller holds card.mu.
func takeAttachment(s *Session) error {
	if s.attached == s.config.Limits.Attachments {
		return fmt.Errorf("%w: the session has %d attachments to groups; detach some", verbs.ErrLimit, s.attached)
	}
	if err := s.config.Quota.Take(quota.Attachments, "attachment"); err != nil {
		return err
	}
	s.attached++
	return nil
}

// admitGroup returns an error if the session's user cannot have one more group of the card.
func admitGroup(s *Session) error {
	groups := quota.Shared{Noun: "groups of the card", Used: uint64(s.card.groups.Len()), Most: uint64(groupLimits.Groups)}
	return s.config.Quota.Admit(quota.Attachments, groups)
}

func giveAttachment(s *Session) {
	s.attached--
	s.config.Quota.Give(quota.Attachments, 1)
}

// refuseAttachment releases an attachment that the table of groups has refused, and returns the error: nil if the queue
// pair was attached before.
func (q *qp) refuseAttachment(s *Session, mgid wire.GID, err error) error {
	if _, again := q.groups[mgid]; !again {
		giveAttachment(s)
	}
	switch {
	case errors.Is(err, mcast.ErrAttached):
		return nil
	case errors.Is(err, mcast.ErrLimit):
		return fmt.Errorf("%w: %w", verbs.ErrLimit, err)
	}
	return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
}

// detachMcast carries out provider.DetachMcast.
func detachMcast(s *Session, r provider.McastRequest) error {
	q, err := enterGroup(s, s.enterToFree, r, func(q *qp) bool { return q.mayDetach(s) })
	if err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	return q.detach(s, r.MGID, r.MLID)
}

// enterGroup acquires the card's lock for an attach or a detach, and makes the checks of both.
func enterGroup(s *Session, enter func() error, r provider.McastRequest, may func(*qp) bool) (*qp, error) {
	if err := enter(); err != nil {
		return nil, err
	}
	q, err := s.qps.Get(r.QP)
	switch {
	case err != nil:
	case q.kind != verbs.QPTypeUD || q.entry.Number <= wire.QPNGSI:
		err = fmt.Errorf("%w: a queue pair of type %v cannot be attached to groups; UD can", verbs.ErrInvalid, q.kind)
	case !may(q):
		err = fmt.Errorf("%w: the queue pair is in RESET; it can be attached to groups from INIT on", verbs.ErrState)
	case !r.MGID.IsMulticast():
		err = fmt.Errorf("%w: %v is not a multicast GID: ::ffff:224.0.0.0/4 and ff00::/8 are", verbs.ErrInvalid, r.MGID)
	}
	if err != nil {
		s.card.mu.Unlock()
		return nil, err
	}
	return q, nil
}

// mayAttach reports whether the queue pair can be attached: not in RESET, as in rdmavt.
func (q *qp) mayAttach() bool { return verbs.QPState(q.state.Load()) != verbs.QPStateReset }

// mayDetach is mayAttach, and true for a queue pair that cannot leave RESET: otherwise it could not be destroyed.
func (q *qp) mayDetach(s *Session) bool {
	stuck := false
	s.entry.Engine().Do(func() { stuck = q.checkCQs() != nil })
	return stuck || q.mayAttach()
}

// detach detaches the queue pair from a group. The caller holds card.mu.
func (q *qp) detach(s *Session, mgid wire.GID, mlid wire.MLID) error {
	card := s.card
	if err := card.groups.Detach(mgid, mlid, q.entry); err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	delete(q.groups, mgid)
	giveAttachment(s)
	if card.groups.Members(mgid) == nil {
		if err := card.host.RemoveGroup(mgid.Addr()); err != nil {
			card.log.Error("cannot remove a group from the steering table", "device", card.Name(), "group", mgid, "error", err)
		}
	}
	card.showGroup(mgid)
	return nil
}

// showGroup has the engine deliver a group's messages to the queue pairs that are attached now.
func (card *Card) showGroup(mgid wire.GID) {
	members := card.groups.Members(mgid)
	card.engine.Do(func() { card.engine.SetGroup(mgid, members) })
}
