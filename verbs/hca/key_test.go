// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
)

// A peer that may access one region cannot predict other keys: each bit of a key is 0 and 1 equally often, and changes
// in half of the keys. Keys of windows too.
func TestKeysAreNotGuessed(t *testing.T) {
	w := newStillPair(t)
	const keys = 1024
	var ones, flips [32]int
	last := uint32(0)
	for i := range keys {
		mr, err := w.a.pd.AllocMR(1, verbs.AccessLocalWrite)
		check(t, err)
		key := uint32(mr.RKey())
		if i%2 != 0 {
			mw, err := w.a.pd.AllocMW(verbs.MWType2)
			check(t, err)
			key = uint32(mw.RKey())
		}
		for bit := range 32 {
			ones[bit] += int(key >> bit & 1)
			flips[bit] += int((key ^ last) >> bit & 1)
		}
		last = key
	}
	for bit := range 32 {
		for what, n := range map[string]int{"set": ones[bit], "changed": flips[bit]} {
			if n < keys*2/5 || n > keys*3/5 {
				t.Errorf("bit %d is %s in %d of %d keys", bit, what, n, keys)
			}
		}
	}
}
