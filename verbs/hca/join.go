// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/ib"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// joined is a membership of a group. The host is a member only for full memberships.
type joined struct {
	group netip.Addr
	full  bool // it receives messages
	done  bool // the host has joined; until then the program does not know the membership's handle
}

// memberships holds the memberships of a session. Package ids uses it (ids.Groups).
type memberships struct {
	handles.Table[joined]
	owner *owner
}

// join carries out provider.JoinMulticast. It does not hold the card's lock while it waits for the
// kernel to join.
func (t *memberships) join(r provider.JoinMulticastRequest) (grant provider.JoinMulticastGrant, err error) {
	join, err := t.Prepare(r)
	if err != nil {
		return grant, err
	}
	if err := join.Reserve(); err != nil {
		return grant, err
	}
	return join.Finish()
}

// joining is a membership in preparation. It implements ids.Join.
type joining struct {
	table  *memberships
	joined *joined
	mgid   wire.GID
	handle provider.Handle
}

// Prepare implements ids.Groups.
func (t *memberships) Prepare(r provider.JoinMulticastRequest) (ids.Join, error) {
	m, mgid, err := t.check(r)
	if err != nil {
		return nil, err
	}
	return &joining{table: t, joined: m, mgid: mgid}, nil
}

// Reserve counts a membership before the host joins, so that pending memberships are limited too. The card stays open
// until Finish has returned.
func (j *joining) Reserve() (err error) {
	t := j.table
	if err := t.owner.enter(); err != nil {
		return err
	}
	defer t.owner.leave()
	if j.handle, err = t.Add(j.joined); err == nil {
		t.owner.life.work.Add(1)
	}
	return err
}

// Finish makes the host join. If that fails, the membership is removed.
func (j *joining) Finish() (grant provider.JoinMulticastGrant, err error) {
	t, m := j.table, j.joined
	defer t.owner.finish()
	source, err := t.sourceFor(m)
	if err == nil && m.full {
		err = network.HostError(t.owner.device.host.Join(m.group))
	}
	t.owner.device.mu.Lock()
	defer t.owner.leave()
	if err != nil {
		t.Remove(j.handle)
		return grant, err
	}
	m.done = true
	return provider.JoinMulticastGrant{Membership: j.handle, MGID: j.mgid, SGID: source}, nil
}

func (t *memberships) check(r provider.JoinMulticastRequest) (*joined, wire.GID, error) {
	if r.State == 0 || r.State&^ib.AllJoinStates != 0 {
		return nil, wire.GID{}, fmt.Errorf("%w: join state 0x%x; it must be a combination of %v", verbs.ErrInvalid, uint8(r.State), ib.AllJoinStates)
	}
	mgid, err := mcast.MGID(r.Group)
	if err != nil {
		return nil, mgid, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	if zone := r.Group.Zone(); zone != "" && zone != t.owner.device.port.Name() {
		return nil, mgid, fmt.Errorf("%w: the group has the zone %s, but the device is on %s", verbs.ErrInvalid, zone, t.owner.device.port.Name())
	}
	return &joined{group: r.Group.Unmap().WithZone(""), full: r.State.Receives()}, mgid, nil
}

// sourceFor returns the source address for messages to a group; a link-local address only if there is no other. A full
// member needs none, since it can still receive.
func (t *memberships) sourceFor(m *joined) (best wire.GID, err error) {
	if err := t.owner.enter(); err != nil {
		return best, err
	}
	defer t.owner.leave()
	best = t.owner.device.port.Now().GIDs.Best(m.group.Is4())
	if best.IsZero() && !m.full {
		return best, fmt.Errorf("%w: %s has no address of the group's IP version to send from; add one (ip address add)", verbs.ErrNoGID, t.owner.device.port.Name())
	}
	return best, nil
}

// Leave carries out provider.LeaveMulticast.
func (t *memberships) Leave(r provider.LeaveMulticastRequest) error {
	m, err := t.unlink(r.Membership)
	if err != nil {
		return err
	}
	defer t.owner.finish()
	if !m.full {
		return nil
	}
	return network.HostError(t.owner.device.host.Leave(m.group))
}

// unlink removes a membership from the session's table. The card stays open until owner.finish.
func (t *memberships) unlink(handle provider.Handle) (*joined, error) {
	if err := t.owner.enterToFree(); err != nil {
		return nil, err
	}
	defer t.owner.leave()
	m, err := t.Get(handle)
	if err == nil && !m.done {
		err = fmt.Errorf("%w: no such membership", verbs.ErrInvalid)
	}
	if err != nil {
		return nil, err
	}
	t.Remove(handle)
	t.owner.life.work.Add(1)
	return m, nil
}

// describe describes the object for Session.Objects.
func (m *joined) describe(handle provider.Handle) Object {
	mgid, _ := mcast.MGID(m.group) // it was joined
	return Object{Handle: handle, Dest: mgid, Full: m.full}
}

// leaveAll ends all memberships, at the end of the session.
func (t *memberships) leaveAll() (failed error) {
	for _, m := range t.All() {
		if m.full {
			failed = errors.Join(failed, fault.Call(func() error { return t.owner.device.host.Leave(m.group) }))
		}
	}
	return failed
}
