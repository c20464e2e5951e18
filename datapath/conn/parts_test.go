// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"math/rand/v2"
	"testing"
)

// TestParts divides a response into parts of changing sizes, and compares them with a list of the ends of the parts.
func TestParts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		packets := 1 + r.Uint32N(300)
		w := work{packets: packets, parts: whole(packets)}
		ends, asked := []uint32{0}, uint32(0)
		for asked < packets || w.answered < packets {
			if r.IntN(2) == 0 && asked < packets {
				w.parts.divide(asked, 1+r.Uint32N(packets), w.answered)
				asked += w.partLeft(asked)
				ends = append(ends, asked)
			} else if w.answered < asked {
				w.answered += 1 + r.Uint32N(asked-w.answered)
			}
			count := 0
			for i, end := range ends[1:] {
				if end <= w.answered {
					continue
				}
				count++
				for place := max(ends[i], w.answered); place < end; place++ {
					if left := w.partLeft(place); left != end-place || w.parts.ends(place) != (place == ends[i]) {
						t.Fatalf("place %d of a part that ends at %d: got %d packets left; %+v", place, end, left, w.parts)
					}
				}
			}
			if n := w.parts.count(w.answered, asked); n != count {
				t.Fatalf("got %d outstanding parts, want %d; %+v", count, n, w.parts)
			}
		}
	}
}

// TestPartsGrow: a READ that began with short parts continues with longer ones while the short ones are outstanding.
func TestPartsGrow(t *testing.T) {
	s := newSlowPeer(t, 0)
	s.requester.atOnce, s.limits.Part = 4, 4
	s.ask()
	s.limits.Part = 64
	lengths := map[uint32]int{}
	for s.completed == 0 {
		s.answer()
		before := len(s.owed)
		s.ask()
		for _, p := range s.owed[before:] {
			lengths[p.psns]++
		}
	}
	if lengths[64] < slowLength/1024/64-2 || lengths[4] > 0 {
		t.Errorf("requests by their packets: %v", lengths)
	}
}
