// SPDX-License-Identifier: Apache-2.0

//go:build linux

package memnet

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/verbs"
)

var errClosed = fmt.Errorf("%w: the in-memory network; create a new one", verbs.ErrClosed)

// checkName rejects a name that a new host cannot have. The caller holds mu.
func (n *Network) checkName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: no name; give the host a unique name", verbs.ErrInvalid)
	}
	if slices.ContainsFunc(n.hosts, func(h *Host) bool { return h.name == name }) {
		return fmt.Errorf("%w: a host of the network already has this name; choose another name, or close that host", verbs.ErrBusy)
	}
	return nil
}

// checkAddresses rejects addresses that a host cannot have. The caller holds mu.
func (n *Network) checkAddresses(h *Host, addresses []netip.Addr) error {
	for i, a := range addresses {
		if what := unfit(a); what != "" {
			return fmt.Errorf("%w: %v is %s; a host can have unicast addresses, such as 10.0.0.1 or fd00::1", verbs.ErrInvalid, a, what)
		}
		if slices.Contains(addresses[:i], a) {
			return fmt.Errorf("%w: duplicate address %v", verbs.ErrInvalid, a)
		}
		for _, other := range n.hosts {
			if other != h && slices.Contains(other.now().Addresses, a) {
				return fmt.Errorf("%w: host %s has %v; remove it there first (SetAddresses)", verbs.ErrBusy, other.name, a)
			}
		}
	}
	return nil
}

// unfit returns the kind of an address that a host cannot have, or "" for an address that a host can have.
func unfit(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "no address"
	case a.IsUnspecified():
		return "unspecified"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsMulticast():
		return "a group's address"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	case a.Is4In6():
		return "an IPv4-mapped IPv6 address (Addr.Unmap converts it)"
	case a.Zone() != "":
		return "an address with a zone (Addr.WithZone removes it)"
	}
	return ""
}
