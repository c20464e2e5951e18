// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"golang.org/x/sys/unix"
)

// MGID returns the multicast GID of a group's IP address: ::ffff:a.b.c.d for IPv4, the address
// itself for IPv6 (IBA A17.4.4; ff0e::ffff:a.b.c.d was RoCEv1). It returns EINVAL if the address is not multicast, or
// if CheckScope rejects it. A zone is ignored.
func MGID(group netip.Addr) (wire.GID, error) {
	if !group.Unmap().IsMulticast() {
		return wire.GID{}, invalid("%v is not a multicast address: 224.0.0.0/4 and ff00::/8 are", group)
	}
	mgid := wire.GIDFromAddr(group)
	return mgid, CheckScope(mgid)
}

// CheckScope returns EINVAL for groups whose packets never leave a host: IPv6 groups of scope 0 (reserved) and 1
// (interface-local; RFC 4291, 2.7).
func CheckScope(mgid wire.GID) error {
	if !mgid.IsIPv4() && mgid.IsMulticast() && mgid[1]&0xF <= 1 {
		return invalid("%v stays inside a host (ff00::/16 is reserved, ff01::/16 is interface-local); ff02::/16 is the link's", mgid)
	}
	return nil
}

// invalid returns EINVAL with its own text.
func invalid(format string, what any) error {
	return errno.New(fmt.Sprintf(format, what), unix.EINVAL)
}

// MAC returns the destination Ethernet address of packets to the group. Several groups share an address: 32 IPv4
// groups, and more IPv6 groups.
func MAC(mgid wire.GID) wire.MAC { return wire.MulticastMAC(mgid) }
