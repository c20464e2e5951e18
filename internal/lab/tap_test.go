// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"

	"github.com/roced/roced/internal/needs"
)

// TestTapIsAPort: a TAP is a port of the bridge with the requested MTU, and a program can open it.
func TestTapIsAPort(t *testing.T) {
	needs.Root(t)
	needs.TUN(t)
	bridge, err := NewBridge("labtest-tap")
	if err != nil {
		t.Fatal(err)
	}
	defer bridge.Close()
	port, err := bridge.Tap(9000)
	if err != nil {
		t.Fatal(err)
	}
	link, err := bridge.Netlink().LinkByName(port)
	if err != nil {
		t.Fatal(err)
	}
	if attrs := link.Attrs(); attrs.MTU != 9000 || attrs.MasterIndex == 0 {
		t.Errorf("MTU %d, bridge %d", attrs.MTU, attrs.MasterIndex)
	}
}
