package hca

import (
	"errors"
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
)

// Limits of the groups of a device. As many groups fit the steering table.
var groupLimits = mcast.Limits{Groups: 16384, QPsPerGroup: maxQP, Attachments: 1 << 18}

// groups are the device's groups, and what is attached to them.
type groups = mcast.Table[*datapath.QP]

// AttachMcast implements verbs.Provider. The engine knows a group before XDP lets
// its packets through, and as long as it does.
func (d *Device) AttachMcast(handle verbs.Handle, mgid wire.GID, mlid wire.MLID) error {
	q, err := d.enterGroup(d.enter, handle, mgid)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	isNew := d.groups.Members(mgid) == nil
	switch err := d.groups.Add(mcast.NewGroup[*datapath.QP](mgid, mlid), q.hot); {
	case errors.Is(err, mcast.ErrAttached):
		return nil
	case errors.Is(err, mcast.ErrLimit):
		return fmt.Errorf("%w: %w", verbs.ErrLimit, err)
	case err != nil && !errors.Is(err, mcast.ErrGroupExists):
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	q.groups++
	d.showGroup(mgid)
	if !isNew {
		return nil
	}
	if err := d.steering.AddGroup(mgid.Addr()); err != nil {
		return errors.Join(err, d.detach(q, mgid, mlid))
	}
	return nil
}

// DetachMcast implements verbs.Provider.
func (d *Device) DetachMcast(handle verbs.Handle, mgid wire.GID, mlid wire.MLID) error {
	q, err := d.enterGroup(d.enterToFree, handle, mgid)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	return d.detach(q, mgid, mlid)
}

// enterGroup takes the device's lock for an attach or a detach, and checks what
// both need.
func (d *Device) enterGroup(enter func() error, handle verbs.Handle, mgid wire.GID) (*qp, error) {
	if err := enter(); err != nil {
		return nil, err
	}
	q, err := d.qps.get(handle)
	switch {
	case err != nil:
	case verbs.QPState(q.state.Load()) == verbs.QPStateReset:
		err = fmt.Errorf("%w: the queue pair is in RESET; a group takes it from INIT on", verbs.ErrState)
	case !mgid.IsMulticast():
		err = fmt.Errorf("%w: %v is not a multicast GID: ::ffff:224.0.0.0/4 and ff00::/8 are", verbs.ErrInvalid, mgid)
	}
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	return q, nil
}

// detach undoes an attachment. The caller holds d.mu.
func (d *Device) detach(q *qp, mgid wire.GID, mlid wire.MLID) error {
	if err := d.groups.Detach(mgid, mlid, q.hot); err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	q.groups--
	if d.groups.Members(mgid) == nil {
		if err := d.steering.RemoveGroup(mgid.Addr()); err != nil {
			d.log.Error("a group stays in the steering table", "device", d.name, "group", mgid, "error", err)
		}
	}
	d.showGroup(mgid)
	return nil
}

// showGroup has the engine deliver to those that are attached now.
func (d *Device) showGroup(mgid wire.GID) {
	members := d.groups.Members(mgid)
	d.engine.Do(func() { d.engine.SetGroup(mgid, members) })
}
