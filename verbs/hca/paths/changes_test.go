// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"net/netip"
	"testing"
)

// The record of a flood of changes is limited.
func TestNewsHaveALimit(t *testing.T) {
	var c Changes
	for i := range 4 * maxNeighbourChanges {
		address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		c.AddNeighbour(address)
		c.AddRoute(netip.PrefixFrom(address, 32))
		if len(c.neighbours) > maxNeighbourChanges || len(c.routes) > maxRouteChanges {
			t.Fatalf("got %d neighbours, %d routes", len(c.neighbours), len(c.routes))
		}
	}
	if !c.AllNeighbours || !c.AllRoutes {
		t.Error("not everything is queried")
	}
}
