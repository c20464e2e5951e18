// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	"github.com/vishvananda/netlink"
)

// TestPriorities: types of service have the kernel's priorities (ip_tos2prio), which the interface's map converts to
// VLAN priorities.
func TestPriorities(t *testing.T) {
	t.Parallel()
	for tos, want := range map[uint8]uint8{0: 0, 0x02: 1, 0x08: 2, 0x0A: 2, 0x10: 6, 0x18: 4, 0x1E: 4, 0x68: 2, 0xB8: 4, 0xE0: 0, 0xFF: 4} {
		if got := TOSPriority(tos); got != want {
			t.Errorf("type of service 0x%02x has priority %d, want %d", tos, got, want)
		}
	}
	mapped := EgressOf(&netlink.Vlan{EgressQosMap: map[uint32]uint32{2: 5, 4: 7, 9: 1}})
	if want := (Egress{2: 5, 4: 7}); mapped != want {
		t.Errorf("%v, want %v", mapped, want)
	}
	if none := EgressOf(&netlink.Device{}); none != (Egress{}) {
		t.Errorf("got %v for an interface that is not a VLAN", none)
	}
}
