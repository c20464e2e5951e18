// SPDX-License-Identifier: Apache-2.0

package card

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/mcast"
)

// ParseGroup parses a multicast address; what names it in errors. An IPv6 zone must match the device, if
// given.
func ParseGroup(what, text, device string) (netip.Addr, error) {
	group, err := netip.ParseAddr(text)
	zone := group.Zone()
	group = group.Unmap().WithZone("")
	switch {
	case err != nil:
		return group, fmt.Errorf("%s %q is not an IP address; use a group such as 239.1.2.3 or ff0e::1:2", what, text)
	case !group.IsMulticast():
		return group, fmt.Errorf("%s %s is not a multicast address (224.0.0.0/4 or ff00::/8)", what, text)
	case zone != "" && device != "" && zone != device:
		return group, fmt.Errorf("the zone of %s %s is interface %s, but -d selects %s; use the same interface", what, text, zone, device)
	}
	if _, err := mcast.MGID(group); err != nil {
		return group, fmt.Errorf("%s %s: %w", what, text, err)
	}
	return group, nil
}
