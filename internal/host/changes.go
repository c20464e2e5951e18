// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

// Changes is implemented by subscribers; see Follow. Its methods are called after a change. They should only record it,
// because a method that blocks delays all subscriptions in the namespace.
type Changes interface {
	// Port is called when the interface itself, its addresses, its queueing disciplines or the number of its queues may
	// have changed.
	Port()
	// Route is called when the route to a destination may have changed in a table (RT_TABLE_*).
	Route(dest netip.Prefix, table int)
	// Routes is called when any route may have changed, for example by a rule.
	Routes()
	// Neighbour is called when a neighbour on the interface may have changed.
	Neighbour(address netip.Addr)
	// Missed is called when notifications were lost, so everything may have changed.
	Missed()
}

// readChange returns the method of Changes to call for a message, or nil, and the index of the affected interface, or 0
// for all interfaces.
func readChange(m syscall.NetlinkMessage) (index int, report func(Changes)) {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		// A message with a family concerns the interface as a bridge port.
		if len(m.Data) >= unix.SizeofIfInfomsg && m.Data[0] == unix.AF_UNSPEC {
			return interfaceOf(m.Data), Changes.Port
		}
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC:
		if len(m.Data) >= unix.SizeofIfInfomsg {
			return interfaceOf(m.Data), Changes.Port
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if len(m.Data) >= unix.SizeofIfAddrmsg {
			return interfaceOf(m.Data), Changes.Port
		}
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return readNeighbour(m.Data)
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return 0, readRoute(m.Data)
	case unix.RTM_NEWRULE, unix.RTM_DELRULE, unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		return 0, Changes.Routes
	}
	return 0, nil
}

// readNeighbour ignores the forwarding entries of bridges, which have another family.
func readNeighbour(data []byte) (index int, report func(Changes)) {
	if len(data) < sizeofNdMsg || data[0] != unix.AF_INET && data[0] != unix.AF_INET6 {
		return 0, nil
	}
	address, ok := netip.AddrFromSlice(attribute(data[sizeofNdMsg:], unix.NDA_DST))
	if !ok {
		return 0, nil
	}
	return interfaceOf(data), func(c Changes) { c.Neighbour(address.Unmap()) }
}

func readRoute(data []byte) (report func(Changes)) {
	dest, table, ok := parseRoute(data)
	if !ok {
		return nil
	}
	return func(c Changes) { c.Route(dest, table) }
}

// parseRoute reads the destination and the table of a struct rtmsg (rtnetlink(7)). For multicast routes,
// which have other families, ok is false.
func parseRoute(data []byte) (dest netip.Prefix, table int, ok bool) {
	const lengthAt, tableAt = 1, 4
	if len(data) < unix.SizeofRtMsg {
		return dest, 0, false
	}
	attributes := data[unix.SizeofRtMsg:]
	address, given := netip.AddrFromSlice(attribute(attributes, unix.RTA_DST))
	switch {
	case given:
	case data[0] == unix.AF_INET:
		address = netip.IPv4Unspecified()
	case data[0] == unix.AF_INET6:
		address = netip.IPv6Unspecified()
	}
	table = int(data[tableAt])
	if wide := attribute(attributes, unix.RTA_TABLE); len(wide) == 4 {
		table = int(binary.NativeEndian.Uint32(wide))
	}
	dest, err := address.Prefix(int(data[lengthAt]))
	return dest, table, err == nil && dest.IsValid()
}
