// SPDX-License-Identifier: Apache-2.0

package card

import (
	"slices"
	"testing"
)

// TestLossesOfARemovedInterface: the counters of a removed interface are absent, not 0.
func TestLossesOfARemovedInterface(t *testing.T) {
	before := []Counter{{Place: "engine", Name: "sent", Packets: 1}, {Place: "link", Name: "rx_dropped", Packets: 4}}
	after := []Counter{{Place: "engine", Name: "sent", Packets: 3}}
	changed := Since(before, after)
	if !slices.Equal(changed, []Counter{{Place: "engine", Name: "sent", Packets: 2}}) {
		t.Errorf("%v", changed)
	}
	if link := LinkLosses(changed); link != nil {
		t.Errorf("got %v for unknown losses", link)
	}
}

// TestSinceOfAResetCounter: the difference of a counter that was reset is 0 and does not wrap.
func TestSinceOfAResetCounter(t *testing.T) {
	changed := Since([]Counter{{Place: "link", Name: "rx_dropped", Packets: 4}}, []Counter{{Place: "link", Name: "rx_dropped", Packets: 1}})
	if changed[0].Packets != 0 {
		t.Errorf("%v", changed)
	}
}
