package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// borrowed is an address with autojoin that somebody else made, such as the
// administrator. It is used as it is.
type borrowed struct{}

// release implements hold.
func (borrowed) release() error { return nil }

// describe implements hold.
func (borrowed) describe() (via Method, foreign bool) { return Netlink, true }

// borrow uses an address that is there already. Without autojoin it makes nobody a member.
func (a *addresses) borrow(group netip.Addr) (hold, error) {
	there, err := a.find(group)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(there, func(address netlink.Addr) bool { return address.Flags&unix.IFA_F_MCAUTOJOIN != 0 }) {
		return borrowed{}, nil
	}
	return nil, fmt.Errorf("%w: it is local to %s already, but no address of it has autojoin", unix.EEXIST, a.ifname)
}

// isOurs says whether a group's address that is there has our mark.
func (a *addresses) isOurs(group netip.Addr) bool {
	there, err := a.find(group)
	return err == nil && slices.ContainsFunc(there, func(address netlink.Addr) bool {
		return address.Label == label(a.ifname)
	})
}

// dumpTries is how often a list is read that the kernel changed meanwhile.
const dumpTries = 5

// find lists the interface's addresses that are the group's: of several lengths, perhaps.
func (a *addresses) find(group netip.Addr) (found []netlink.Addr, err error) {
	list, err := a.list()
	for _, address := range list {
		if ip, ok := netip.AddrFromSlice(address.IP); ok && ip.Unmap() == group {
			found = append(found, address)
		}
	}
	return found, err
}

// list lists the interface's IPv4 addresses, in the kernel's order.
func (a *addresses) list() (list []netlink.Addr, err error) {
	for range dumpTries {
		list, err = a.netlink.AddrList(onLink(a.index), netlink.FAMILY_V4)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", a.ifname, err)
	}
	return list, nil
}
