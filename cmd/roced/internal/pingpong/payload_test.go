// SPDX-License-Identifier: Apache-2.0

package pingpong

import (
	"testing"
)

// TestPingPayload: the payload equals that of a capture of ibv_ud_pingpong -c.
func TestPingPayload(t *testing.T) {
	if got := string(Payload(4)); got != "\x00{{{" {
		t.Errorf("%q", got)
	}
	if got := Payload(4096); len(got) != 4096 || got[4095] != '{' {
		t.Errorf("%d bytes, the last 0x%02x", len(got), got[len(got)-1])
	}
	if got := Payload(0); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
