// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// python is the system's interpreter, for which Debian installs python3-scapy.
const python = "/usr/bin/python3"

// TestScapyAgrees has scapy read our datagrams and build them again: fields, lengths, IPv4 checksum and ICRC. Scapy
// computes no ICRC over IPv6; the captures test that.
func TestScapyAgrees(t *testing.T) {
	needs.Tools(t, python, "/usr/lib/python3/dist-packages/scapy/contrib/roce.py")
	all := exhibits(t, false)
	lines := judge(t, python, "testdata/judge.py", writePcap(t, frames(all)))
	if len(lines) != len(all) {
		t.Fatalf("%d lines for %d frames", len(lines), len(all))
	}
	for i, e := range all {
		want := fmt.Sprint(uint8(opcodeOf(&e.d)), bit(e.d.Solicited), 1, -len(e.payload)&3, 0, uint16(e.d.PKey), uint32(e.d.DestQP), 0,
			uint32(e.d.PSN), e.path.TrafficClass, hopsOf(e.path), e.path.VLAN, " True")
		if lines[i] != want {
			t.Errorf("frame %d:\n%s, want\n%s\n% x", i, lines[i], want, e.frame)
		}
	}
}
