// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// groups are an endpoint's memberships.
type groups struct {
	endpoint *Endpoint

	mu     sync.Mutex
	joined map[netip.Addr]*joined // by keyOf
}

// joined is a membership. For a full one the queue pair is attached to the group.
type joined struct {
	membership *verbs.Membership // nil if the program has joined by other means
	full       bool
}

// keyOf returns a group's address in the form of a GID: without a zone.
func keyOf(group netip.Addr) netip.Addr { return group.Unmap().WithZone("") }

func (g *groups) init(e *Endpoint) { g.endpoint, g.joined = e, map[netip.Addr]*joined{} }

// Join makes the endpoint a member of a group. It then receives the group's messages, including its own unless
// Options.NoLoopback is set. Sending to Group(group) needs no join. Joining again has no effect, except that a
// send-only member becomes a full one.
//
// While the endpoint is a member, the group's packets do not reach the host's own sockets on the interface.
func (e *Endpoint) Join(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("join: %w", errNil)
	}
	return e.groups.update(group, func(j *joined) (*joined, error) { return e.groups.join(group, j, true) })
}

// JoinSendOnly makes the endpoint a member that only sends to a group. The host never reports it by
// IGMP or MLD. A full member stays a full member.
func (e *Endpoint) JoinSendOnly(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("join send only: %w", errNil)
	}
	return e.groups.update(group, func(j *joined) (*joined, error) { return e.groups.join(group, j, false) })
}

// Attach makes the endpoint receive a group's messages, for programs that make the host a member by other means: a
// connection id (package cm). It has no effect for a group that the endpoint has joined. Leave and Close undo it.
func (e *Endpoint) Attach(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("attach: %w", errNil)
	}
	return e.groups.update(group, func(j *joined) (*joined, error) {
		if j != nil && j.full {
			return j, nil
		}
		if err := e.qp.AttachMcast(verbs.GIDFromAddr(keyOf(group)), 0); err != nil {
			return j, err
		}
		attached := &joined{full: true}
		if j != nil {
			attached.membership = j.membership
		}
		return attached, nil
	})
}

// Leave ends a membership; verbs.ErrNoGID without one. Messages that have already arrived can still be received.
func (e *Endpoint) Leave(group netip.Addr) error {
	if e == nil {
		return fmt.Errorf("leave: %w", errNil)
	}
	return e.groups.update(group, func(j *joined) (*joined, error) {
		if j == nil {
			return nil, fmt.Errorf("leave group %v: %w: the endpoint has not joined it", group, verbs.ErrNoGID)
		}
		return nil, e.groups.leave(group, j)
	})
}

// update replaces a membership by the one that change returns; nil means no membership.
func (g *groups) update(group netip.Addr, change func(*joined) (*joined, error)) error {
	life := &g.endpoint.life
	if err := life.Enter(); err != nil {
		return err
	}
	defer life.Leave()
	g.mu.Lock()
	defer g.mu.Unlock()
	key := keyOf(group)
	j, err := change(g.joined[key])
	if j != nil {
		g.joined[key] = j
	} else {
		delete(g.joined, key)
	}
	return life.Explain(err)
}

// join returns a membership that replaces the present one, and is full if full is set.
func (g *groups) join(group netip.Addr, present *joined, full bool) (*joined, error) {
	if present != nil && (present.full || !full) {
		return present, nil
	}
	flags := verbs.JoinSendOnlyFullMember
	if full {
		flags = verbs.JoinFullMember
	}
	membership, err := g.endpoint.verbs.JoinMulticast(group, flags)
	if err != nil {
		return present, err
	}
	if full {
		if err := g.endpoint.qp.AttachMcast(membership.MGID(), membership.MLID()); err != nil {
			return present, errors.Join(err, transport.Free(membership))
		}
	}
	if present != nil {
		err = transport.Free(present.membership)
	}
	return &joined{membership, full}, err
}

func (g *groups) leave(group netip.Addr, j *joined) (err error) {
	if j.full {
		err = transport.Freed(g.endpoint.qp.DetachMcast(verbs.GIDFromAddr(keyOf(group)), 0))
	}
	return errors.Join(err, transport.Free(j.membership))
}

// leaveAll leaves all groups, for Close. Later joins fail.
func (g *groups) leaveAll() (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for group, j := range g.joined {
		err = errors.Join(err, g.leave(group, j))
	}
	clear(g.joined)
	return err
}
