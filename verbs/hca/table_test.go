package hca

import (
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// A place is used again when all others have been, and then by other handles, until its
// generations begin anew; never by handle 0.
func TestTableHandles(t *testing.T) {
	table := table[int]{noun: "thing", limit: 3, kind: quota.PDs}
	seen := map[provider.Handle]bool{0: true}
	for range 3 * (datapath.HandleGenerations - 1) {
		handle, err := table.add(new(int))
		check(t, err)
		if seen[handle] {
			t.Fatalf("handle %#x again, after %d", handle, len(seen))
		}
		seen[handle] = true
		if _, err := table.get(handle); err != nil {
			t.Fatal(err)
		}
		table.remove(handle)
		_, err = table.get(handle)
		refused(t, err, verbs.ErrObjectClosed, "the thing")
	}
	again, err := table.add(new(int))
	check(t, err)
	if !seen[again] || again == 0 {
		t.Errorf("handle %#x when all were used", again)
	}
	for _, none := range []provider.Handle{0, 1, 5, provider.Handle(datapath.HandleFor(3, 1))} {
		_, err := table.get(none)
		refused(t, err, verbs.ErrInvalid, "no such thing")
	}
}

// A peer that may use one region cannot tell the keys of others: each bit of a key is as often 0 as 1, and
// as often another than in the key before. Windows have such keys too.
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
