// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/roced/roced/verbs/hca/network"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// groupTable holds a card's groups with their attached queue pairs. The card's lock protects it.
type groupTable struct {
	*mcast.Table[*datapath.QP]
	engine *datapath.Workers
}

// attachments holds the attachments of a session's queue pairs to groups.
type attachments struct {
	owner  *owner
	qps    *qps
	groups *groupTable // the card's
	used   int
}

// attach carries out provider.AttachMcast. The engine has a group before XDP redirects its packets, and until XDP stops
// redirecting them.
func (t *attachments) attach(r provider.McastRequest) error {
	q, err := t.enterFor(t.owner.enter, r, (*qp).mayAttach)
	if err != nil {
		return err
	}
	mgid := r.MGID
	defer t.owner.leave()
	if _, again := q.groups[mgid]; !again {
		if err := t.take(); err != nil {
			return err
		}
	}
	isNew := t.groups.Members(mgid) == nil
	if isNew {
		if err := t.admitGroup(); err != nil {
			t.give()
			return err
		}
	}
	if err := t.groups.Add(mcast.NewGroup[*datapath.QP](mgid, r.MLID), q.entry); err != nil && !errors.Is(err, mcast.ErrGroupExists) {
		return t.refuse(q, mgid, err)
	}
	q.groups[mgid] = r.MLID
	t.groups.show(mgid)
	if !isNew {
		return nil
	}
	if err := t.owner.device.host.AddGroup(mgid.Addr()); err != nil {
		return network.HostError(errors.Join(err, t.detachFrom(q, mgid, r.MLID)))
	}
	return nil
}

// take counts a new attachment. The caller holds the card's lock.
func (t *attachments) take() error {
	if t.used == t.owner.config.Limits.Attachments {
		return fmt.Errorf("%w: the session has %d attachments to groups, the maximum; detach some", verbs.ErrLimit, t.used)
	}
	if err := t.owner.config.Quota.Take(quota.Attachments, "attachment"); err != nil {
		return err
	}
	t.used++
	return nil
}

// admitGroup returns an error if the session's user cannot have one more group of the card.
func (t *attachments) admitGroup() error {
	groups := quota.Shared{Noun: "groups of the card", Used: uint64(t.groups.Len()), Most: uint64(groupLimits.Groups)}
	return t.owner.config.Quota.Admit(quota.Attachments, groups)
}

func (t *attachments) give() {
	t.used--
	t.owner.config.Quota.Give(quota.Attachments, 1)
}

// refuse releases an attachment that the table of groups has refused, and returns the error: nil if the queue pair was
// attached before.
func (t *attachments) refuse(q *qp, mgid wire.GID, err error) error {
	if _, again := q.groups[mgid]; !again {
		t.give()
	}
	switch {
	case errors.Is(err, mcast.ErrAttached):
		return nil
	case errors.Is(err, mcast.ErrLimit):
		return fmt.Errorf("%w: %w", verbs.ErrLimit, err)
	}
	return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
}

// detach carries out provider.DetachMcast.
func (t *attachments) detach(r provider.McastRequest) error {
	q, err := t.enterFor(t.owner.enterToFree, r, (*qp).mayDetach)
	if err != nil {
		return err
	}
	defer t.owner.leave()
	return t.detachFrom(q, r.MGID, r.MLID)
}

// enterFor acquires the card's lock for an attach or a detach, and makes the checks of both. The caller releases the
// lock unless there is an error.
func (t *attachments) enterFor(enter func() error, r provider.McastRequest, may func(*qp) bool) (*qp, error) {
	if err := enter(); err != nil {
		return nil, err
	}
	q, err := t.qps.Get(r.QP)
	switch {
	case err != nil:
	case q.kind != verbs.QPTypeUD || q.entry.Number <= wire.QPNGSI:
		err = fmt.Errorf("%w: a queue pair of type %v cannot be attached to groups; only UD can", verbs.ErrInvalid, q.kind)
	case !may(q):
		err = fmt.Errorf("%w: the queue pair is in RESET; change it to INIT before attaching it to groups", verbs.ErrState)
	case !r.MGID.IsMulticast():
		err = fmt.Errorf("%w: %v is not a multicast GID (::ffff:224.0.0.0/4 or ff00::/8)", verbs.ErrInvalid, r.MGID)
	}
	if err != nil {
		t.owner.leave()
		return nil, err
	}
	return q, nil
}

// mayAttach reports whether the queue pair can be attached: not in RESET, as in rdmavt.
func (q *qp) mayAttach() bool { return verbs.QPState(q.state.Load()) != verbs.QPStateReset }

// mayDetach is mayAttach, and also true for a queue pair that cannot leave RESET: otherwise it could not be destroyed.
func (q *qp) mayDetach() bool {
	stuck := false
	q.engine().Do(func() { stuck = q.checkCQs() != nil })
	return stuck || q.mayAttach()
}

// detachFrom detaches the queue pair from a group. The caller holds the card's lock.
func (t *attachments) detachFrom(q *qp, mgid wire.GID, mlid wire.MLID) error {
	if err := t.groups.Detach(mgid, mlid, q.entry); err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	delete(q.groups, mgid)
	t.give()
	if t.groups.Members(mgid) == nil {
		if err := t.owner.device.host.RemoveGroup(mgid.Addr()); err != nil {
			t.owner.device.log.Error("cannot remove a group from the steering table", "device", t.owner.device.port.Name(), "group", mgid, "error", err)
		}
	}
	t.groups.show(mgid)
	return nil
}

// detachAll detaches all queue pairs, at the end of the session. The caller holds the card's lock.
func (t *attachments) detachAll() (failed error) {
	for _, q := range t.qps.All() {
		for mgid, mlid := range q.groups {
			failed = errors.Join(failed, t.detachFrom(q, mgid, mlid))
		}
	}
	return failed
}

// show publishes a group's current members to the engine, for delivery.
func (g *groupTable) show(mgid wire.GID) {
	members := g.Members(mgid)
	g.engine.Do(func() { g.engine.SetGroup(mgid, members) })
}

// attachments adds the attachments of the queue pair to a page; it returns true if the page is full before the last.
func (q *qp) attachments(p *page, handle provider.Handle) (more bool) {
	groups := slices.SortedFunc(maps.Keys(q.groups), func(a, b wire.GID) int { return bytes.Compare(a[:], b[:]) })
	for int(p.next.Index) < len(groups) {
		if p.full() {
			return true
		}
		group := groups[p.next.Index]
		p.put(Object{Handle: handle, Number: uint32(q.entry.Number), Dest: group, MLID: q.groups[group]})
		p.next.Index++
	}
	return false
}
