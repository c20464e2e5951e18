// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
)

// A bridge's port opens, with a warning that names the bridge.
func TestBridgePortWarns(t *testing.T) {
	hosts := labtest.Pair(t)
	bridge := &netlink.Bridge{LinkAttrs: attrs("br0", 1500)}
	addLink(t, hosts.A, bridge, true)
	check(t, hosts.A.Netlink().LinkSetMaster(eth0(t, hosts.A), bridge))
	var log logged
	open(t, hosts.A, log.option())
	if !log.says("master=br0 kind=bridge") {
		t.Error("no warning names the bridge")
	}
}
