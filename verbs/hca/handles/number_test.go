package handles

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
)

// Numbers are not used again before all others were, and never two with the same place in the engine's table.
func TestQPNumbers(t *testing.T) {
	numbers := NewNumbers[int]()
	numbers.Add(5, new(int))
	seen := make([]bool, wire.QPNMax+1)
	const taken = 5 // a place
	for range 1 << 19 {
		n := numbers.Draw()
		if n <= wire.QPNGSI || n == wire.QPNMulticast || n > wire.QPNMax || seen[n] || n%places == taken {
			t.Fatalf("number %v", n)
		}
		seen[n] = true
	}
}

// Who knows numbers of queue pairs cannot tell the next: each is as far from the one before as chance has it,
// on each device otherwise.
func TestQPNumbersAreNotGuessed(t *testing.T) {
	steps := map[wire.QPN]bool{}
	for range 8 {
		numbers := NewNumbers[int]()
		last := wire.QPN(0)
		for range 32 {
			n := numbers.Draw()
			steps[(n-last)&wire.QPNMax] = true
			last = n
		}
	}
	if len(steps) < 8*32-2 {
		t.Errorf("%d steps of %d differ", len(steps), 8*32)
	}
}
