//go:build linux

package memnet

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/roced/roced/verbs"
)

var errClosed = fmt.Errorf("%w: the network in memory; make another", verbs.ErrClosed)

// checkName refuses a name that a new host cannot have. The caller holds mu.
func (n *Network) checkName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: no name; give the host one that no other host of the network has", verbs.ErrInvalid)
	}
	if slices.ContainsFunc(n.hosts, func(h *Host) bool { return h.name == name }) {
		return fmt.Errorf("%w: a host of the network has that name; choose another, or close that host", verbs.ErrBusy)
	}
	return nil
}

// checkAddresses refuses addresses that a host cannot have. The caller holds mu.
func (n *Network) checkAddresses(h *Host, addresses []netip.Addr) error {
	for i, a := range addresses {
		if what := unfit(a); what != "" {
			return fmt.Errorf("%w: %v is %s; a host has unicast addresses, such as 10.0.0.1 or fd00::1", verbs.ErrInvalid, a, what)
		}
		if slices.Contains(addresses[:i], a) {
			return fmt.Errorf("%w: %v twice; give each address once", verbs.ErrInvalid, a)
		}
		for _, other := range n.hosts {
			if other != h && slices.Contains(other.now().Addresses, a) {
				return fmt.Errorf("%w: host %s has %v; take it from there first (SetAddresses)", verbs.ErrBusy, other.name, a)
			}
		}
	}
	return nil
}

// unfit says what keeps an address from being a host's own; empty if nothing does.
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
		return "an IPv4 address inside IPv6 (Addr.Unmap takes it out)"
	case a.Zone() != "":
		return "an address with a zone (Addr.WithZone takes it off)"
	}
	return ""
}
