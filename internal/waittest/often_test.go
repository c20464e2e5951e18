// SPDX-License-Identifier: Apache-2.0

package waittest

import (
	"testing"
	"time"
)

// TestOften: every test makes at least one attempt.
func TestOften(t *testing.T) {
	for value, want := range map[string][3]int{"": {1, 1, 4}, "all": {1, 1, 20}} {
		t.Setenv(roundsVariable, value)
		for i, long := range []int{0, 1, 20} {
			if got := Often(long); got != want[i] {
				t.Errorf("%q: %d attempts instead of %d, want %d", value, got, long, want[i])
			}
		}
	}
}

// TestWanted: the variable's number is used, or the usual one if it is not set.
func TestWanted(t *testing.T) {
	const variable = "ROCED_WANTED"
	for value, want := range map[string]int{"": 7, "0": 0, "90000": 90000} {
		t.Setenv(variable, value)
		if got := Wanted(t, variable, 7); got != want {
			t.Errorf("%q: %d, want %d", value, got, want)
		}
	}
}

// TestLong: on a slow machine limits are longer. No value makes them shorter.
func TestLong(t *testing.T) {
	for value, want := range map[string]time.Duration{"": time.Minute, "10": 10 * time.Minute, "0": time.Minute, "much": time.Minute} {
		t.Setenv(slowVariable, value)
		if got := Long(time.Minute); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
