// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
)

// TestNeighbourWithoutProtocol: requesting an IPv6 neighbour on an interface whose MTU is too small for IPv6 returns
// ErrNoRoute.
func TestNeighbourWithoutProtocol(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	q := queries(t, hosts.A)
	neighbour := netip.MustParseAddr("fd77::2")
	check(t, q.Manage(neighbour))
	link, err := hosts.A.Netlink().LinkByName("eth0")
	check(t, err)
	check(t, hosts.A.Netlink().LinkSetMTU(link, 300))
	if err := q.Manage(neighbour); !errors.Is(err, ErrNoRoute) {
		t.Errorf("%v, want %v", err, ErrNoRoute)
	}
	check(t, q.Manage(netip.MustParseAddr("10.77.0.2")))
}
