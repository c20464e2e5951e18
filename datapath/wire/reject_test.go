// SPDX-License-Identifier: Apache-2.0

package wire

import "testing"

// TestRejectReasons: each reason of the kernel has the kernel's description.
func TestRejectReasons(t *testing.T) {
	for reason := RejectReason(1); reason <= 35; reason++ {
		if words := reason.String(); (words == "" || words[0] == 'u' && reason != RejectUnsupported) && reason != 34 {
			t.Errorf("reason %d: %q", uint16(reason), words)
		}
	}
	for reason, want := range map[RejectReason]string{
		RejectServiceID: "invalid service ID", RejectConsumer: "consumer defined", 0: "unrecognized reason 0", 34: "unrecognized reason 34",
		35: "vendor option is not supported", 36: "unrecognized reason 36",
	} {
		if got := reason.String(); got != want {
			t.Errorf("reason %d: %q, want %q", uint16(reason), got, want)
		}
	}
}
