// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"errors"
	"strings"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/verbs"
)

// TestAdmit: the last eighth of a shared resource is reserved for users that have few.
func TestAdmit(t *testing.T) {
	for _, row := range []struct {
		name             string
		used, own, asked uint64
		why              string // empty: admitted
	}{
		{"the first", 0, 0, 1, ""},
		{"all that is not kept", 0, 0, 896, ""},
		{"one more than that", 0, 0, 897, "1024, the last eighth is for those with at most 5, and eve has 0"},
		{"the last before those that are kept", 895, 895, 1, ""},
		{"the first of those", 896, 896, 1, "all users together have 896 of 1024"},
		{"the first of those, for who has little", 896, 3, 1, ""},
		{"not little any more", 897, 5, 1, "eve has 5"},
		{"too much at once", 897, 0, 6, "eve has 0"},
		{"the very last", 1023, 0, 1, ""},
		{"none is left", 1024, 0, 1, "1024 of 1024; close some"},
		{"more than is left", 1022, 0, 3, "1022 of 1024; close some"},
		{"beyond a limit that was lowered", 2000, 0, 1, "2000 of 1024"},
	} {
		err := Shared{"things", row.used, 1024}.admit("eve", row.own, row.asked)
		if (err == nil) != (row.why == "") || err != nil && (!errors.Is(err, verbs.ErrLimit) || !strings.Contains(err.Error(), row.why)) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestPoolOfAll: memory and descriptors are counted for all users together, and a refused request takes nothing.
func TestPoolOfAll(t *testing.T) {
	pool := NewPool(PoolLimits{Memory: 1 << 20, Descriptors: 1024})
	eve, mia := New("eve", Limits{Memory: 1 << 20, CompChannels: 890}, pool), New("mia", Limits{}, pool)
	errtest.Check(t, eve.TakeMemory(7<<17))
	errtest.Refused(t, eve.TakeMemory(1), verbs.ErrLimit, "last eighth", "eve has 917504")
	errtest.Check(t, mia.TakeMemory(4096))
	errtest.Refused(t, mia.TakeMemory(1), verbs.ErrLimit, "mia has 4096")
	eve.GiveMemory(7 << 17)
	errtest.Check(t, mia.TakeMemory(7<<16))
	for range 890 {
		errtest.Check(t, eve.Take(CompChannels, "completion channel"))
	}
	errtest.Refused(t, eve.Take(CompChannels, "completion channel"), verbs.ErrLimit, "890 completion channels, in all its programs, and may have 890")
	errtest.Check(t, eve.TakeDescriptors(3))
	errtest.Check(t, eve.Take(EventChannels, "event channel"))
	errtest.Check(t, eve.Take(Memberships, "membership"))
	errtest.Check(t, eve.Take(PDs, "PD")) // has none
	errtest.Refused(t, eve.Take(EventChannels, "event channel"), verbs.ErrLimit, "2 descriptors of the service", "eve has 896")
	errtest.Check(t, mia.TakeDescriptors(2))
	eve.Give(CompChannels, 890)
	errtest.Check(t, mia.TakeDescriptors(880))
	if used := eve.Used(); used.CompChannels != 0 || used.EventChannels != 1 || used.PDs != 1 {
		t.Errorf("used %+v", used)
	}
	pool.SetLimits(PoolLimits{})
	errtest.Check(t, mia.TakeMemory(1<<40))
}
