package mcast

import (
	"fmt"
	"slices"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// What Table.Add and Detach answer. ErrGroupExists and ErrAttached are answers more
// than errors: rvt_mcast_add gives them, and an attach that gets them has succeeded.
var (
	ErrGroupExists = errno.New("the group was there, the queue pair was added", unix.EEXIST)
	ErrAttached    = errno.New("the queue pair is attached already", unix.ESRCH)
	ErrMLID        = errno.New("the MGID is known with another MLID", unix.EINVAL)
	ErrNotAttached = errno.New("the queue pair is not attached to the group", unix.EINVAL)
	ErrLimit       = errno.New("limit reached", unix.ENOMEM)
)

// Limits are what a table can hold.
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
	refs int // held by who found it, and by the table
}

// NewGroup makes a group for Table.Add (rvt_mcast_alloc).
func NewGroup[Q comparable](mgid wire.GID, mlid wire.MLID) *Group[Q] {
	return &Group[Q]{MGID: mgid, MLID: mlid}
}

// Table is a port's groups, with the rules and return values of rdmavt
// (drivers/infiniband/sw/rdmavt/mcast.c). An MLID may have several MGIDs; an MGID has
// one MLID. It has no lock: the card's control plane calls it under its own.
type Table[Q comparable] struct {
	limits      Limits
	groups      map[wire.GID]*Group[Q]
	attachments int
}

// NewTable makes an empty table.
func NewTable[Q comparable](limits Limits) *Table[Q] {
	return &Table[Q]{limits: limits, groups: map[wire.GID]*Group[Q]{}}
}

// Find gives the group with this MGID and MLID, nil if there is none
// (rvt_mcast_find). A reference is held: who finds a group gives it back with Put.
func (t *Table[Q]) Find(mgid wire.GID, mlid wire.MLID) *Group[Q] {
	group := t.groups[mgid]
	if group == nil || group.MLID != mlid {
		return nil
	}
	group.refs++
	return group
}

// Put gives back a reference that Find took.
func (t *Table[Q]) Put(group *Group[Q]) { group.refs-- }

// Add inserts a group and attaches a queue pair to it (rvt_mcast_add): nil when
// both were added; ErrGroupExists when the group was there and the queue pair was added to
// that one; ErrAttached when it was attached already; ErrMLID when the MGID has
// another MLID; ErrLimit. After an error but ErrGroupExists nothing has changed.
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
		return fmt.Errorf("%w: no queue pair to a group", ErrLimit)
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

// Attach attaches a queue pair to a group, which is made if it is not there
// (rvt_attach_mcast). Attaching twice is no error, and needs one Detach.
func (t *Table[Q]) Attach(mgid wire.GID, mlid wire.MLID, qp Q) error {
	switch err := t.Add(NewGroup[Q](mgid, mlid), qp); err {
	case ErrGroupExists, ErrAttached:
		return nil
	default:
		return err
	}
}

// Detach undoes Attach (rvt_detach_mcast); ErrNotAttached if there is nothing to
// undo. The last queue pair's detach frees the group.
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

// Members are the queue pairs attached to an MGID, nil if there are none. The
// slice is never changed, only replaced.
func (t *Table[Q]) Members(mgid wire.GID) []Q {
	if group := t.groups[mgid]; group != nil {
		return group.qps
	}
	return nil
}

// Groups lists the groups there are, in no order.
func (t *Table[Q]) Groups() []*Group[Q] {
	all := make([]*Group[Q], 0, len(t.groups))
	for _, group := range t.groups {
		all = append(all, group)
	}
	return all
}

// TreeEmpty counts the ports that still have groups (rvt_mcast_tree_empty): it is
// the in-use count, so 0 when the tree is empty, whatever the name says.
func TreeEmpty[Q comparable](ports ...*Table[Q]) (inUse int) {
	for _, port := range ports {
		if len(port.groups) > 0 {
			inUse++
		}
	}
	return inUse
}
