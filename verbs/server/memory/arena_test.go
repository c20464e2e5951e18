// SPDX-License-Identifier: Apache-2.0

package memory

import "testing"

// TestArenaJoinsWhatIsFree: pieces that are freed, in any order, are one, which a larger one fits into.
func TestArenaJoinsWhatIsFree(t *testing.T) {
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}} {
		a, err := newArena(nil, 1<<20)
		check(t, err)
		var pieces [3][]byte
		for i := range pieces {
			pieces[i], err = a.Alloc(pageSize)
			check(t, err)
		}
		top := a.top
		for _, i := range order {
			a.Free(pieces[i])
		}
		if len(a.free) != 1 || a.free[0] != (extent{0, 1 << 20}) {
			t.Errorf("order %v: free are %v", order, a.free)
		}
		_, err = a.Alloc(3 * pageSize)
		check(t, err)
		if a.top != top {
			t.Errorf("order %v: other pages were taken", order)
		}
		a.close(true)
	}
}
