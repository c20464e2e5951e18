// SPDX-License-Identifier: Apache-2.0

package cli

import "testing"

func TestWay(t *testing.T) {
	for _, row := range []struct{ xdp, socket, network, way string }{
		{"native", "copy", "xdp", "XDP native, AF_XDP copy"},
		{"generic", "zero-copy", "xdp", "XDP generic, AF_XDP zero-copy"},
		{"none", "udp", "udp", "UDP sockets"},
		{"none", "none", "none", "in-memory network"},
		{"", "", "none", "in-memory network"},
	} {
		if network, way := Network(row.xdp, row.socket), Way(row.xdp, row.socket); network != row.network || way != row.way {
			t.Errorf("XDP %q, sockets %q: %q, %q", row.xdp, row.socket, network, way)
		}
	}
}
