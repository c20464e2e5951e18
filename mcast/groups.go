// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// The errors of Table.Add and Detach. ErrGroupExists and ErrAttached are results of rvt_mcast_add that do not mean a
// failure: with them an attach succeeds.
var (
	ErrGroupExists = errno.New("the group existed; the queue pair was added", unix.EEXIST)
	ErrAttached    = errno.New("the queue pair is already attached", unix.ESRCH)
	ErrMLID        = errno.New("the MGID is in use with another MLID", unix.EINVAL)
	ErrNotAttached = errno.New("the queue pair is not attached to the group", unix.EINVAL)
	ErrLimit       = errno.New("limit reached", unix.ENOMEM)
)

// Limits are the limits of a table.
type Limits struct {
	Groups      int
	QPsPerGroup int
	Attachments int // over all groups
}

// Group is a multicast group of a table, and the queue pairs attached to it.
type Group[Q comparable] struct {
	MGID wire.GID
	MLID wire.MLID

	qps  []Q
	refs int // held by callers of Find, and by the table
}

// NewGroup returns a group for Table.Add (rvt_mcast_alloc).
func NewGroup[Q comparable](mgid wire.GID, mlid wire.MLID) *Group[Q] {
	return &Group[Q]{MGID: mgid, MLID: mlid}
}

// Table holds a port's groups, with the rules and return values of rdmavt
// (drivers/infiniband/sw/rdmavt/mcast.c). An MLID may have several MGIDs; an MGID has one MLID. The table has no lock:
// the card's control plane calls it under its own lock.
type Table[Q comparable] struct {
	limits      Limits
	groups      map[wire.GID]*Group[Q]
	attachments int
}

// NewTable returns an empty table.
func NewTable[Q comparable](limits Limits) *Table[Q] {
	return &Table[Q]{limits: limits, groups: map[wire.GID]*Group[Q]{}}
}

// Find returns the group with this MGID and MLID, or nil (rvt_mcast_find). It acquires a reference, which the caller
// releases with Put.
func (t *Table[Q]) Find(mgid wire.GID, mlid wire.MLID) *Group[Q] {
	group := t.groups[mgid]
	if group == nil || group.MLID != mlid {
		return nil
	}
	group.refs++
	return group
}

// Put releases a reference acquired by Find.
func (t *Table[Q]) Put(group *Group[Q]) { group.refs-- }

// Add adds a group and attaches a queue pair to it (rvt_mcast_add). It returns nil if both were
// added; ErrGroupExists if the MGID had a group and the queue pair was attached to that group; ErrAttached if the queue
// pair was already attached; ErrMLID if the MGID has another MLID; ErrLimit. After any error except ErrGroupExists
// nothing has changed.
func (t *Table[Q]) Add(group *Group[Q], qp Q) error {
	known := t.groups[group.MGID]
	if known != nil {
		return t.addTo(known, group.MLID, qp)
	}
	switch {
	case len(t.groups) >= t.limits.Groups:
		return fmt.Errorf("%w: %d groups", ErrLimit, t.limits.Groups)
	case t.attachments >= t.limits.Attachments:
		return fmt.Errorf("%w: %d attachments", ErrLimit, t.limits.Attachments)
	case t.limits.QPsPerGroup < 1:
		return fmt.Errorf("%w: no queue pairs are allowed per group", ErrLimit)
	}
	group.qps = []Q{qp}
	group.refs++
	t.groups[group.MGID] = group
	t.attachments++
	return nil
}

func (t *Table[Q]) addTo(group *Group[Q], mlid wire.MLID, qp Q) error {
	switch {
	case group.MLID != mlid:
		return fmt.Errorf("%w: %v has MLID %#x, not %#x", ErrMLID, group.MGID, uint16(group.MLID), uint16(mlid))
	case slices.Contains(group.qps, qp):
		return ErrAttached
	case len(group.qps) >= t.limits.QPsPerGroup:
		return fmt.Errorf("%w: %d queue pairs in group %v", ErrLimit, t.limits.QPsPerGroup, group.MGID)
	case t.attachments >= t.limits.Attachments:
		return fmt.Errorf("%w: %d attachments", ErrLimit, t.limits.Attachments)
	}
	group.qps = append(slices.Clip(group.qps), qp)
	t.attachments++
	return ErrGroupExists
}

// Attach attaches a queue pair to a group, and creates the group if it does not exist (rvt_attach_mcast). Attaching
// again is not an error; one Detach undoes all Attach calls.
func (t *Table[Q]) Attach(mgid wire.GID, mlid wire.MLID, qp Q) error {
	switch err := t.Add(NewGroup[Q](mgid, mlid), qp); err {
	case ErrGroupExists, ErrAttached:
		return nil
	default:
		return err
	}
}

// Detach undoes Attach (rvt_detach_mcast). It fails with ErrNotAttached if the queue pair is not
// attached. The detach of the last queue pair removes the group.
func (t *Table[Q]) Detach(mgid wire.GID, mlid wire.MLID, qp Q) error {
	group := t.groups[mgid]
	if group == nil || group.MLID != mlid || !slices.Contains(group.qps, qp) {
		return ErrNotAttached
	}
	rest := make([]Q, 0, len(group.qps)-1)
	for _, other := range group.qps {
		if other != qp {
			rest = append(rest, other)
		}
	}
	group.qps = rest
	t.attachments--
	if len(rest) == 0 {
		delete(t.groups, mgid)
		group.refs--
	}
	return nil
}

// Members returns the queue pairs attached to an MGID, or nil. The slice is never changed, only replaced.
func (t *Table[Q]) Members(mgid wire.GID) []Q {
	if group := t.groups[mgid]; group != nil {
		return group.qps
	}
	return nil
}

// Groups lists all groups, in no particular order.
func (t *Table[Q]) Groups() []*Group[Q] {
	all := make([]*Group[Q], 0, len(t.groups))
	for _, group := range t.groups {
		all = append(all, group)
	}
	return all
}

// Len returns the number of groups.
func (t *Table[Q]) Len() int { return len(t.groups) }

// TreeEmpty counts the ports that still have groups (rvt_mcast_tree_empty). Despite its name, which
// is the kernel's, it returns 0 if there are no groups.
func TreeEmpty[Q comparable](ports ...*Table[Q]) (inUse int) {
	for _, port := range ports {
		if len(port.groups) > 0 {
			inUse++
		}
	}
	return inUse
}
