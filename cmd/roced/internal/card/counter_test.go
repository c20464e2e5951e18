package card

import (
	"slices"
	"testing"
)

// TestLossesOfAnInterfaceThatIsGone: its own counters are absent, not 0.
func TestLossesOfAnInterfaceThatIsGone(t *testing.T) {
	before := []Counter{{Place: "engine", Name: "sent", Packets: 1}, {Place: "link", Name: "rx_dropped", Packets: 4}}
	after := []Counter{{Place: "engine", Name: "sent", Packets: 3}}
	changed := Since(before, after)
	if !slices.Equal(changed, []Counter{{Place: "engine", Name: "sent", Packets: 2}}) {
		t.Errorf("%v", changed)
	}
	if link := LinkLosses(changed); link != nil {
		t.Errorf("what is not known is %v", link)
	}
}

// TestSinceOfACounterThatStartsAnew: it has counted nothing, rather than 2^64 less some.
func TestSinceOfACounterThatStartsAnew(t *testing.T) {
	changed := Since([]Counter{{Place: "link", Name: "rx_dropped", Packets: 4}}, []Counter{{Place: "link", Name: "rx_dropped", Packets: 1}})
	if changed[0].Packets != 0 {
		t.Errorf("%v", changed)
	}
}
