// SPDX-License-Identifier: Apache-2.0

package region

import (
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

// After keys have been added and removed, exactly the remaining ones are found. The table is never more than half full.
func TestKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := new(Table)
	regions, windows := map[ib.LKey]*MR{}, map[ib.LKey]*MW{}
	for range 2000 {
		key := s.DrawKey(r.Uint32)
		if s.find(key) != nil && !s.find(key).free() {
			t.Fatalf("%#x is drawn twice", key)
		}
		if r.IntN(2) == 0 {
			regions[key] = &MR{LKey: key}
			s.SetMR(regions[key])
		} else {
			windows[key] = new(MW)
			s.SetMW(ib.RKey(key), windows[key])
		}
		for key := range regions {
			if r.IntN(3) == 0 {
				s.ClearKey(key)
				delete(regions, key)
			}
			break
		}
		if n := len(regions) + len(windows); s.count != n || 2*n > len(s.slots) || len(s.slots) > max(8, 8*n) {
			t.Fatalf("counted %d keys, want %d, in %d slots", s.count, n, len(s.slots))
		}
	}
	for key, mr := range regions {
		if s.region(key) != mr || s.region(key^1) != nil || s.window(ib.RKey(key)) != nil {
			t.Fatalf("region %#x: %v", key, s.region(key))
		}
	}
	for key, mw := range windows {
		if s.window(ib.RKey(key)) != mw || s.window(ib.RKey(key^1)) != mw || s.region(key) != nil || mw.key != ib.RKey(key) {
			t.Fatalf("window %#x: %v", key, s.window(ib.RKey(key)))
		}
	}
	s.ClearKey(0x12345678) // a key that does not exist
}

// The index of a drawn key is not 0, and its slot is free.
func TestDrawnKeys(t *testing.T) {
	s := new(Table)
	s.SetMR(&MR{LKey: 0x155})
	next := []uint32{0x55, 0x1AA, 0x9AA, 0x2AA} // invalid index, used key, used slot, free
	key := s.DrawKey(func() (one uint32) {
		one, next = next[0], next[1:]
		return one
	})
	if key != 0x2AA {
		t.Errorf("%#x was drawn", key)
	}
	s.SetMW(0x2AA, new(MW))
	if s.window(0x2BB) == nil || s.window(0xAAA) != nil || s.window(0x1AA) != nil {
		t.Error("a window's key was assigned to another object")
	}
	if s.region(0x9AA) != nil || s.region(0x155) == nil || s.region(0x156) != nil {
		t.Error("a key was assigned to another object")
	}
}

// Each key is counted once, after any sequence of operations.
func TestKeysAreCounted(t *testing.T) {
	s := new(Table)
	s.ClearKey(0x155)
	if s.region(0x155) != nil || s.window(0x155) != nil {
		t.Error("got a key of an empty table")
	}
	for i, step := range []struct {
		do    func()
		count int
	}{
		{func() { s.SetMR(&MR{LKey: 0x155}) }, 1},
		{func() { s.SetMR(&MR{LKey: 0x155}) }, 1},
		{func() { s.SetMW(0x255, new(MW)) }, 2},
		{func() { s.ClearKey(0x155) }, 1},
		{func() { s.ClearKey(0x155) }, 1},
		{func() { s.ClearKey(0x255) }, 0},
	} {
		if step.do(); s.count != step.count {
			t.Errorf("step %d: %d are counted", i, s.count)
		}
	}
}
