// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"
	"time"
)

// Spinning that never hits is tried less and less often, and more often again after a hit.
func TestSpin(t *testing.T) {
	var s spin
	tries := func(hit bool, most time.Duration) (n int) {
		for range 1000 {
			if s.begin() {
				n++
				s.end(hit, most)
			}
		}
		return n
	}
	if n := tries(false, time.Hour); n < 15 || n > 25 {
		t.Errorf("%d tries of 1000, and none paid", n)
	}
	if n := tries(true, time.Hour); n < 900 {
		t.Errorf("%d tries of 1000, and all paid", n)
	}
	if n := tries(true, -1); n < mostLate || n > 2*mostLate {
		t.Errorf("%d tries of 1000, and all were late", n)
	}
}
