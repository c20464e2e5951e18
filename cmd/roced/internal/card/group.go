package card

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/mcast"
)

// ParseGroup reads a multicast address. An IPv6 zone may say once more which interface it is, if that is
// known.
func ParseGroup(text, device string) (netip.Addr, error) {
	group, err := netip.ParseAddr(text)
	zone := group.Zone()
	group = group.Unmap().WithZone("")
	switch {
	case err != nil:
		return group, fmt.Errorf("GROUP %q is not an IP address; write a group's, such as 239.1.2.3 or ff0e::1:2", text)
	case !group.IsMulticast():
		return group, fmt.Errorf("GROUP %s is not a multicast address: 224.0.0.0/4 and ff00::/8 are", text)
	case zone != "" && device != "" && zone != device:
		return group, fmt.Errorf("GROUP %s is on interface %s, and -d names %s; give both the same", text, zone, device)
	}
	if _, err := mcast.MGID(group); err != nil {
		return group, fmt.Errorf("GROUP %s: %w", text, err)
	}
	return group, nil
}
