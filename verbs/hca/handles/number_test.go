// SPDX-License-Identifier: Apache-2.0

package handles

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
)

// A number is reused only after all others, and no two numbers have the same place in the engine's table.
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

// Known numbers do not reveal the next one: the difference to the previous number is random, and other on each device.
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
		t.Errorf("got %d different steps, want %d", len(steps), 8*32)
	}
}
