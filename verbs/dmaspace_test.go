// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"math/rand/v2"
	"testing"
)

// TestDMASpace adds and removes regions at random, more than a run holds, and compares with a map of the owner of each
// byte.
func TestDMASpace(t *testing.T) {
	const slots, slot = 4 * maxRun, 8
	memory := make([]byte, slots*slot)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var s dmaSpace
	owners := map[int]*MR{} // by slot; a region has the first three bytes of its slot
	look := func(n int) {
		from := n * slot
		if mr, offset := s.find(memory[from+1 : from+2]); mr != owners[n] || mr != nil && offset != 1 {
			t.Fatalf("slot %d: got region %p at offset %d, want %p", n, mr, offset, owners[n])
		}
		if mr, _ := s.find(memory[from+1 : from+4]); mr != nil {
			t.Fatalf("slot %d: bytes beyond the region were found in it", n)
		}
		if mr, _ := s.find(memory[from+3 : from+4]); mr != nil {
			t.Fatalf("slot %d: a byte between regions was found in one", n)
		}
	}
	for step := range 40000 {
		n := r.IntN(slots)
		own := memory[n*slot:][:3]
		switch mr := owners[n]; {
		case mr == nil && step%20000 < 12000, mr == nil && r.IntN(4) == 0:
			owners[n] = new(MR)
			s.add(owners[n], own)
		case mr != nil:
			s.remove(new(MR), own) // another region
			look(n)
			s.remove(mr, own)
			delete(owners, n)
		}
		look(n)
		look(r.IntN(slots))
	}
	for n, mr := range owners {
		s.remove(mr, memory[n*slot:][:3])
	}
	if len(s.runs) != 0 {
		t.Errorf("got %d runs after removing all regions, want 0", len(s.runs))
	}
}
