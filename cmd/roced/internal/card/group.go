package card

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/mcast"
)

// ParseGroup reads a multicast address; errors call it what the command line does. An IPv6 zone may say once more
// which interface it is, if that is known.
func ParseGroup(what, text, device string) (netip.Addr, error) {
	group, err := netip.ParseAddr(text)
	zone := group.Zone()
	group = group.Unmap().WithZone("")
	switch {
	case err != nil:
		return group, fmt.Errorf("%s %q is not an IP address; write a group's, such as 239.1.2.3 or ff0e::1:2", what, text)
	case !group.IsMulticast():
		return group, fmt.Errorf("%s %s is not a multicast address: 224.0.0.0/4 and ff00::/8 are", what, text)
	case zone != "" && device != "" && zone != device:
		return group, fmt.Errorf("%s %s is on interface %s, and -d names %s; give both the same", what, text, zone, device)
	}
	if _, err := mcast.MGID(group); err != nil {
		return group, fmt.Errorf("%s %s: %w", what, text, err)
	}
	return group, nil
}
