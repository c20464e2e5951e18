// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"bytes"
	"cmp"
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

// addresses makes the host a member of a group by adding the group's address to the interface, with autojoin. These
// measures prevent side effects of such an address:
//   - It is never the interface's first address, which NAT's REDIRECT and other programs treat as
//     the interface's own (see placement). Its scope is global, so that the kernel sorts it after
//     the others, and it is moved there again when the others are removed and added again.
//   - It has its own label. Otherwise SIOCGIFADDR (netdevice(7)) may return it.
//   - It has no local route. Otherwise the host's own messages to the group are sent through lo.
//
// Memberships.mu guards it.
type addresses struct {
	netlink   *netlink.Handle
	queries   *host.Queries
	namespace *host.Namespace
	ifname    string
	index     int
	record    *journal.Journal // of our addresses, one per line
}

// recordKind is the journal kind of these records.
const recordKind = "memberships"

// labelSuffix marks our addresses, for administrators and for sweep.
const labelSuffix = ":roced"

// label returns the label of our addresses. A long name is truncated as by the kernel when an interface is renamed.
func label(ifname string) string {
	return ifname[:min(len(ifname), unix.IFNAMSIZ-1-len(labelSuffix))] + labelSuffix
}

// onLink returns a link with only an index, so that the netlink library does not look up the interface.
func onLink(index int) netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// single returns the /32 network of an address.
func single(group netip.Addr) *net.IPNet {
	return &net.IPNet{IP: group.AsSlice(), Mask: net.CIDRMask(32, 32)}
}

// join adds the group's address, or uses an existing address of another program.
func (a *addresses) join(group netip.Addr) (hold, error) {
	if a.isLocal(group) {
		return a.borrow(group)
	}
	if err := a.record.Add(group.String()); err != nil {
		return nil, fmt.Errorf("record the address: %w", err)
	}
	err := a.add(group)
	if err == nil {
		return addressHold{a, group}, nil
	}
	if failed := a.record.Remove(group.String()); failed != nil {
		return nil, errors.Join(err, failed)
	}
	// EEXIST: with the same prefix length. EADDRINUSE: with another one, and autojoin.
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

// remove removes the address, if it and its interface still exist.
func (a *addresses) remove(group netip.Addr) error {
	if err := gone(a.netlink.AddrDel(onLink(a.index), &netlink.Addr{IPNet: single(group)})); err != nil {
		return fmt.Errorf("remove address: %w", err)
	}
	return nil
}

// restore adds an address of ours again. It reports whether the address was missing, and whether the existing address
// is ours.
func (a *addresses) restore(group netip.Addr) (wasGone, ours bool, err error) {
	switch err := a.add(group); {
	case err == nil:
		return true, true, nil
	case errors.Is(err, unix.EEXIST) && a.hasOurs(group):
		// The address was removed and added again before the change was read.
		return false, true, a.dropRoute(group, unix.RT_TABLE_LOCAL)
	}
	return true, false, a.record.Remove(group.String())
}

// hasOurs reports whether the interface has the group's address with our label.
func (a *addresses) hasOurs(group netip.Addr) bool {
	list, err := a.queries.Addresses()
	return err == nil && has(list, group, isOurs)
}

// dropRoute removes the local route that the kernel created for an address. The route may not exist, or may be in the
// table of a VRF.
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

// isLocal reports whether the interface already has a local route to the group. That route belongs to an address of
// another program, and dropRoute must not remove it.
func (a *addresses) isLocal(group netip.Addr) bool {
	routes, err := a.netlink.RouteGetWithOptions(group.AsSlice(), &netlink.RouteGetOptions{OifIndex: a.index, FIBMatch: true})
	// The type in the response is always multicast, but the scope is that of the local route.
	return err == nil && len(routes) > 0 && routes[0].Scope == unix.RT_SCOPE_HOST
}

// groupMemory is the memory of a group in a kernel socket (struct ip_mc_socklist), in bytes.
const groupMemory = 48

// explain adds the limits that ENOBUFS may refer to, and the remedies.
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
	return fmt.Errorf("%w: all addresses with autojoin of a network namespace share the limits of one socket: the sysctl "+
		"net.ipv4.igmp_max_memberships, now %s, and the sysctl net.core.optmem_max, in bytes, of which a group uses %d; "+
		"raise the limit that is reached, or use method socket", err, limit, groupMemory)
}

// Undo removes groups' addresses that killed processes left in the calling thread's network namespace, as Open does. It
// needs CAP_NET_ADMIN if such addresses exist.
func Undo(stateDir string) error {
	in, err := journal.ThisNamespace()
	if err != nil {
		return err
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer handle.Close()
	return sweep(handle, cmp.Or(stateDir, journal.Dir), in)
}

// Left returns the groups whose addresses were added through Netlink, among the addresses of an interface.
func Left(list []host.Address) (groups []netip.Addr) {
	for _, a := range list {
		if isOurs(a) && a.IP.IsMulticast() {
			groups = append(groups, a.IP)
		}
	}
	return groups
}

// sweep removes the addresses that killed processes left in a namespace.
func sweep(handle *netlink.Handle, dir string, in journal.Namespace) error {
	return journal.Sweep(dir, recordKind, in, func(index int, left []string) error {
		link, err := handle.LinkByIndex(index)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil // its addresses were removed with it
		}
		if err != nil {
			return err
		}
		for _, line := range left {
			group, bad := netip.ParseAddr(line)
			if bad != nil || !group.Is4() {
				continue
			}
			// Match the label too, because the address may have been replaced by that of another program.
			ours := &netlink.Addr{IPNet: single(group), Label: label(link.Attrs().Name)}
			err = errors.Join(err, gone(handle.AddrDel(onLink(index), ours)))
		}
		return err
	})
}

// gone ignores the errors of removing an address that no longer exists, or whose interface no longer exists.
func gone(err error) error {
	if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// close closes the sockets.
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

// addressHold is a hold by an address of ours.
type addressHold struct {
	addresses *addresses
	group     netip.Addr
}

// release implements hold. An address that could not be removed stays in the record.
func (h addressHold) release() error {
	if err := h.addresses.remove(h.group); err != nil {
		return err
	}
	return h.addresses.record.Remove(h.group.String())
}

// describe implements hold.
func (h addressHold) describe() (via Method, foreign bool) { return Netlink, false }
