package ud

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/roced/roced/verbs"
)

// groups are an endpoint's memberships.
type groups struct {
	mu     sync.Mutex
	joined map[netip.Addr]*joined
}

// joined is a membership. For a full one the queue pair is attached to the group.
type joined struct {
	membership *verbs.Membership // nil if the program has it by other means
	full       bool
}

// Join makes the endpoint a member of a group. It then receives the group's messages, including its
// own unless Options.NoLoopback is set. Sending to Group(group) needs no join. Joining again does
// nothing, but makes a send-only member a full one.
//
// From then on the group's packets do not reach the host's own sockets on the interface.
func (e *Endpoint) Join(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("join: %w", errNil)
	}
	return e.join(group, true)
}

// JoinSendOnly makes the endpoint a member that only sends to a group. The host never reports it by
// IGMP or MLD. A full member stays a full member.
func (e *Endpoint) JoinSendOnly(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("join send only: %w", errNil)
	}
	return e.join(group, false)
}

// Attach has the endpoint receive a group's messages, for programs that make the host a member by other
// means: a connection id (package cm). For a group that the endpoint is in it does nothing. Leave and Close
// undo it.
func (e *Endpoint) Attach(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("attach: %w", errNil)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.making.Done()
	e.groups.mu.Lock()
	defer e.groups.mu.Unlock()
	name := group.Unmap().WithZone("")
	j := e.groups.joined[name]
	if j == nil {
		j = &joined{}
	}
	if j.full {
		return nil
	}
	if err := e.qp.AttachMcast(verbs.GIDFromAddr(name), 0); err != nil {
		return e.explain(err)
	}
	j.full = true
	e.groups.joined[name] = j
	return nil
}

func (e *Endpoint) join(group netip.Addr, full bool) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.making.Done()
	e.groups.mu.Lock()
	defer e.groups.mu.Unlock()
	name := group.Unmap().WithZone("")
	before := e.groups.joined[name]
	if before != nil && (before.full || !full) {
		return nil
	}
	j, err := e.newMember(group, full)
	if err != nil {
		return e.explain(err)
	}
	e.groups.joined[name] = j
	if before != nil {
		return freed(before.membership.Close())
	}
	return nil
}

func (e *Endpoint) newMember(group netip.Addr, full bool) (*joined, error) {
	flags := verbs.JoinSendOnlyFullMember
	if full {
		flags = verbs.JoinFullMember
	}
	membership, err := e.verbs.JoinMulticast(group, flags)
	if err != nil {
		return nil, err
	}
	if full {
		if err := e.qp.AttachMcast(membership.MGID(), membership.MLID()); err != nil {
			return nil, errors.Join(err, freed(membership.Close()))
		}
	}
	return &joined{membership, full}, nil
}

// Leave ends a membership; verbs.ErrNoGID if there is none. Messages that have come before can still
// be received.
func (e *Endpoint) Leave(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("leave: %w", errNil)
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.making.Done()
	e.groups.mu.Lock()
	defer e.groups.mu.Unlock()
	name := group.Unmap().WithZone("")
	j := e.groups.joined[name]
	if j == nil {
		return fmt.Errorf("leave group %v: %w: the endpoint has not joined it", group, verbs.ErrNoGID)
	}
	delete(e.groups.joined, name)
	return e.leave(name, j)
}

func (e *Endpoint) leave(group netip.Addr, j *joined) (err error) {
	if j.full {
		err = freed(e.qp.DetachMcast(verbs.GIDFromAddr(group), 0))
	}
	if j.membership != nil {
		err = errors.Join(err, freed(j.membership.Close()))
	}
	return err
}

// leaveAll leaves all groups, for Close. No join begins any more.
func (e *Endpoint) leaveAll() (err error) {
	e.groups.mu.Lock()
	defer e.groups.mu.Unlock()
	for name, j := range e.groups.joined {
		err = errors.Join(err, e.leave(name, j))
		delete(e.groups.joined, name)
	}
	return err
}
