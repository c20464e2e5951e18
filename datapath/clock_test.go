// SPDX-License-Identifier: Apache-2.0

package datapath

import "testing"

// The clocks of two cards agree with the kernel's, and so with each other. The precision of a reading depends on the
// machine; it is between two readings of the kernel's clock.
func TestClocksAgree(t *testing.T) {
	for range 100 {
		one, other := newClock(), newClock()
		hit := false
		for range 1000 { // the thread may be interrupted between the readings
			before := monotonic()
			first, _ := one.read()
			second, _ := other.read()
			after := monotonic()
			const slack = 1000 // ns
			hit = hit || first+slack >= before && second+slack >= before && first <= after+slack && second <= after+slack
		}
		if !hit {
			t.Error("a card's clock is not CLOCK_MONOTONIC")
		}
	}
}
