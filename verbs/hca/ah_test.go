// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"net/netip"
	"testing"
)

// A neighbour entry without an address (a bridge's) matches no next hop, not even those of handles without one: handles
// to groups and to this device.
func TestNeighbourWithoutAddress(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	route := a.route("10.0.0.2")
	route.GRH.DGID = gid("239.1.2.3")
	group, err := a.pd.CreateAH(context.Background(), route)
	check(t, err)
	a.device.follower.Neighbour(netip.Addr{})
	a.device.follower.look(a.device.follower.Take())
	a.post(a.send(1, group, w.b))
	w.run()
	expect(t, a.completions(), ok(1))
	if drops := a.drops(); len(drops) != 0 {
		t.Errorf("drops %v", drops)
	}
}
