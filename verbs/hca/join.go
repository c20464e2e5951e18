package hca

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
)

// maxMemberships is how many joins a device has at once.
const maxMemberships = 1 << 16

// joined is a join. A send-only one is nobody's business but the program's: the
// host never hears of it.
type joined struct {
	group netip.Addr
	full  bool
}

// JoinMulticast implements verbs.Provider. The host's membership is made without the
// device's lock, since it waits for the kernel.
func (d *Device) JoinMulticast(group netip.Addr, flags verbs.JoinFlags) (verbs.MembershipGrant, error) {
	mgid, err := mcast.MGID(group)
	if err != nil {
		return verbs.MembershipGrant{}, err
	}
	if zone := group.Zone(); zone != "" && zone != d.name {
		return verbs.MembershipGrant{}, fmt.Errorf("%w: the group is one of %s, and the device is on %s", verbs.ErrInvalid, zone, d.name)
	}
	m := &joined{group: group.Unmap().WithZone(""), full: flags == verbs.JoinFullMember}
	grant := verbs.MembershipGrant{MGID: mgid}
	if grant.SGID, err = d.sourceFor(m); err != nil {
		return verbs.MembershipGrant{}, err
	}
	defer d.others.Done()
	if m.full {
		if err := d.host.join(m.group); err != nil {
			return verbs.MembershipGrant{}, err
		}
	}
	if grant.Handle, err = d.keepMembership(m); err != nil && m.full {
		_ = d.host.leave(m.group) // what refused it is the error to tell of
	}
	return grant, err
}

// sourceFor finds the address to send to a group from, a link-local one only if there is no
// other, and keeps the device open until others.Done. A full member may do without: it receives.
func (d *Device) sourceFor(m *joined) (best wire.GID, err error) {
	if err := d.enter(); err != nil {
		return best, err
	}
	defer d.mu.Unlock()
	for _, gid := range d.gids.all() {
		if gid.IsIPv4() == m.group.Is4() && preference(gid) < preference(best) {
			best = gid
		}
	}
	if best.IsZero() && !m.full {
		return best, fmt.Errorf("%w: %s has no address of the group's IP version to send from; ip address add", verbs.ErrNoGID, d.name)
	}
	d.others.Add(1)
	return best, nil
}

func (d *Device) keepMembership(m *joined) (verbs.Handle, error) {
	if err := d.enter(); err != nil {
		return 0, err
	}
	defer d.mu.Unlock()
	return d.memberships.add(m)
}

// LeaveMulticast implements verbs.Provider.
func (d *Device) LeaveMulticast(handle verbs.Handle) error {
	if err := d.enterToFree(); err != nil {
		return err
	}
	m, err := d.memberships.get(handle)
	if err != nil {
		d.mu.Unlock()
		return err
	}
	d.memberships.remove(handle)
	d.others.Add(1)
	d.mu.Unlock()
	defer d.others.Done()
	if !m.full {
		return nil
	}
	return d.host.leave(m.group)
}
