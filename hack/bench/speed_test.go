// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/roced/roced/hack/bench/harness"
)

// TestCoresAreMeasured checks that speed and distance are positive, also on one processor.
func TestCoresAreMeasured(t *testing.T) {
	if speed := coreSpeed(); speed <= 0 {
		t.Errorf("speed %v", speed)
	}
	if distance := coreDistance(); distance <= 0 {
		t.Errorf("distance %v", distance)
	}
}

func TestRoundByRound(t *testing.T) {
	if got := harness.RoundByRound([]float64{1, 8, 3}, []float64{2, 8, 2}); got != 1 {
		t.Errorf("the median of 0.5, 1 and 1.5 is %v", got)
	}
}
