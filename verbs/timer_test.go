// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"
	"time"
)

// TestTimerCodes checks that each code's time converts back to the code, and that a time between two codes converts to
// the longer one.
func TestTimerCodes(t *testing.T) {
	if d := RNRTimerDuration(0); d != 655360*time.Microsecond {
		t.Errorf("code 0: got %v", d)
	}
	if d := TimeoutDuration(14); d != 67108864*time.Nanosecond {
		t.Errorf("timeout 14: got %v", d)
	}
	if TimeoutDuration(0) != 0 || RNRTimerDuration(32) != -1 || TimeoutDuration(32) != -1 {
		t.Error("invalid codes have a time")
	}
	for code := uint8(0); code <= maxTimeCode; code++ {
		if got := RNRTimerCode(RNRTimerDuration(code)); got != code {
			t.Errorf("RNR timer %d: converted back to %d", code, got)
		}
		if got := TimeoutCode(TimeoutDuration(code)); got != code {
			t.Errorf("timeout %d: converted back to %d", code, got)
		}
	}
	for _, row := range []struct {
		d            time.Duration
		rnr, timeout uint8
	}{
		{-1, 1, 0}, {1, 1, 1}, {600 * time.Microsecond, 12, 8}, {500 * time.Millisecond, 0, 17}, {24 * time.Hour, 0, 31},
	} {
		if rnr, timeout := RNRTimerCode(row.d), TimeoutCode(row.d); rnr != row.rnr || timeout != row.timeout {
			t.Errorf("%v: got RNR timer %d and timeout %d, want %d and %d", row.d, rnr, timeout, row.rnr, row.timeout)
		}
	}
}
