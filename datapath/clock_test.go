// SPDX-License-Identifier: Apache-2.0

package datapath

import "testing"

// The clocks of two cards agree with the kernel's clock, and therefore with each other. A reading must be between two
// readings of the kernel's clock, so the precision of the check depends on the machine.
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
