// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"testing"
)

// TestKilledAndFlapped: a process is killed, then the host's own address is removed and added again. The
// group's address, which no process maintains, is the first one until the next process opens
// (docs/FAULTS.md). With sockets nothing is left.
func TestKilledAndFlapped(t *testing.T) {
	for _, row := range []struct {
		via  Method
		then string
	}{{Netlink, "239.1.2.3"}, {Socket, "10.77.0.1"}} {
		t.Run(row.via.String(), func(t *testing.T) {
			hosts, dir := pair(t), t.TempDir()
			_, kill := startChild(t, hosts.A, order{hosts.A.Path(), dir, row.via, netip.MustParseAddr("239.1.2.3")}, nil)
			kill()
			flap(t, hosts.A)
			if first := firstAddress(t, hosts.A); first != row.then {
				t.Errorf("%s is the first, want %s", first, row.then)
			}
			openWith(t, Config{Interface: "eth0", Namespace: hosts.A.Path(), StateDir: dir})
			if first := firstAddress(t, hosts.A); first != "10.77.0.1" {
				t.Errorf("after the next process has opened, %s is the first", first)
			}
		})
	}
}
