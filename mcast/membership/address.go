package membership

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/internal/journal"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// addresses makes the host a member by giving the interface the group's address, with
// autojoin. Used so, an address would do harm. What keeps it from it:
//   - it is never the interface's first, which NAT's REDIRECT and others take for the
//     interface's own (see placement): with scope global it is sorted behind the others, and
//     put there again when those go and come back
//   - a label of its own: else SIOCGIFADDR (netdevice(7)) may take it for the interface's
//   - no local route: else what the host itself sends to the group goes to lo
//
// It is used under Memberships.mu.
type addresses struct {
	netlink   *netlink.Handle
	queries   *host.Queries
	namespace *host.Namespace
	ifname    string
	index     int
	dir       string           // of the records
	record    *journal.Journal // of what is ours: an address a line
}

// recordKind is the kind of these records.
const recordKind = "memberships"

// labelSuffix marks addresses that are ours, for people and for sweep.
const labelSuffix = ":roced"

// label is cut as the kernel cuts it when an interface is renamed.
func label(ifname string) string {
	return ifname[:min(len(ifname), unix.IFNAMSIZ-1-len(labelSuffix))] + labelSuffix
}

// onLink names an interface so that the library needs not ask for it.
func onLink(index int) netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// single is the network of one address.
func single(group netip.Addr) *net.IPNet {
	return &net.IPNet{IP: group.AsSlice(), Mask: net.CIDRMask(32, 32)}
}

// join adds the group's address, or uses the one that somebody else made.
func (a *addresses) join(group netip.Addr) (hold, error) {
	if a.isLocal(group) {
		return a.borrow(group)
	}
	if err := a.record.Add(group.String()); err != nil {
		return nil, fmt.Errorf("note an address to be made: %w", err)
	}
	err := a.add(group)
	if err == nil {
		return addressHold{a, group}, nil
	}
	if failed := a.record.Remove(group.String()); failed != nil {
		return nil, errors.Join(err, failed)
	}
	// Of the same length, or of another one with autojoin.
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EADDRINUSE) {
		return a.borrow(group)
	}
	return nil, a.explain(err)
}

// add adds the address, without its local route.
func (a *addresses) add(group netip.Addr) error {
	err := a.netlink.AddrAdd(onLink(a.index), &netlink.Addr{
		IPNet: single(group), Label: label(a.ifname), Scope: unix.RT_SCOPE_UNIVERSE,
		Flags: unix.IFA_F_MCAUTOJOIN | unix.IFA_F_NOPREFIXROUTE,
	})
	if err != nil {
		return fmt.Errorf("add address: %w", err)
	}
	if err := a.dropRoute(group, unix.RT_TABLE_LOCAL); err != nil {
		return errors.Join(err, a.remove(group))
	}
	return nil
}

// remove removes the address, if it and its interface are there.
func (a *addresses) remove(group netip.Addr) error {
	if err := gone(a.netlink.AddrDel(onLink(a.index), &netlink.Addr{IPNet: single(group)})); err != nil {
		return fmt.Errorf("remove address: %w", err)
	}
	return nil
}

// restore puts back an address of ours that is gone, and says whether it was gone, and whether
// one is there now that is ours.
func (a *addresses) restore(group netip.Addr) (wasGone, ours bool, err error) {
	switch err := a.add(group); {
	case err == nil:
		return true, true, nil
	case errors.Is(err, unix.EEXIST) && a.hasOurs(group):
		// It left and came back before the news of it did.
		return false, true, a.dropRoute(group, unix.RT_TABLE_LOCAL)
	}
	return true, false, a.record.Remove(group.String())
}

// hasOurs says whether a group's address that is there has our mark.
func (a *addresses) hasOurs(group netip.Addr) bool {
	list, err := a.queries.Addresses()
	return err == nil && has(list, group, isOurs)
}

// dropRoute removes the local route that the kernel made for an address. It may be in
// another table (that of a VRF) or not be there.
func (a *addresses) dropRoute(group netip.Addr, table int) error {
	err := a.netlink.RouteDel(&netlink.Route{
		Table: table, Type: unix.RTN_LOCAL, Scope: unix.RT_SCOPE_HOST, Protocol: unix.RTPROT_KERNEL,
		Dst: single(group), LinkIndex: a.index,
	})
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("remove local route: %w", err)
	}
	return nil
}

// isLocal says whether there is a local route to the group on the interface already:
// somebody else's address, which would lose its route to us.
func (a *addresses) isLocal(group netip.Addr) bool {
	routes, err := a.netlink.RouteGetWithOptions(group.AsSlice(), &netlink.RouteGetOptions{OifIndex: a.index, FIBMatch: true})
	// The type is told as that of a group, the scope as it is.
	return err == nil && len(routes) > 0 && routes[0].Scope == unix.RT_SCOPE_HOST
}

// explain names the limit that was reached.
func (a *addresses) explain(err error) error {
	if !errors.Is(err, unix.ENOBUFS) {
		return err
	}
	limit := "unknown"
	_ = a.namespace.Do(func() error {
		value, err := os.ReadFile("/proc/sys/net/ipv4/igmp_max_memberships")
		if err == nil {
			limit = string(bytes.TrimSpace(value))
		}
		return err
	})
	return fmt.Errorf("%w: all addresses with autojoin of a network namespace share the sysctl net.ipv4.igmp_max_memberships, now %s; raise it, or use method socket", err, limit)
}

// sweep removes what killed processes left in the namespace.
func (a *addresses) sweep() error {
	return journal.Sweep(a.dir, recordKind, a.namespace.ID(), func(index int, left []string) error {
		link, err := a.netlink.LinkByIndex(index)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil // and its addresses with it
		}
		for _, line := range left {
			group, bad := netip.ParseAddr(line)
			if err != nil || bad != nil || !group.Is4() {
				continue
			}
			// By its label: it could have been replaced by somebody else's since.
			err = gone(a.netlink.AddrDel(onLink(index), &netlink.Addr{IPNet: single(group), Label: label(link.Attrs().Name)}))
		}
		return err
	})
}

// gone makes success of the errors of removing what is not there, nor its interface.
func gone(err error) error {
	if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// close closes what was opened.
func (a *addresses) close() error {
	if a.netlink != nil {
		a.netlink.Close()
	}
	if a.queries != nil {
		a.queries.Close()
	}
	if a.record == nil {
		return nil
	}
	return a.record.Close()
}

// addressHold is an address that is ours.
type addressHold struct {
	addresses *addresses
	group     netip.Addr
}

// release implements hold. What could not be removed stays in the record.
func (h addressHold) release() error {
	if err := h.addresses.remove(h.group); err != nil {
		return err
	}
	return h.addresses.record.Remove(h.group.String())
}

// describe implements hold.
func (h addressHold) describe() (via Method, foreign bool) { return Netlink, false }
