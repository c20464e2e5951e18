package hca

import (
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs"
)

// A place is used again when all others have been, and then by other handles, until its
// generations begin anew; never by handle 0.
func TestTableHandles(t *testing.T) {
	table := table[int]{noun: "thing", limit: 3, kind: limitPDs}
	seen := map[verbs.Handle]bool{0: true}
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
	for _, none := range []verbs.Handle{0, 1, 5, verbs.Handle(datapath.HandleFor(3, 1))} {
		_, err := table.get(none)
		refused(t, err, verbs.ErrInvalid, "no such thing")
	}
}

// A peer that may use one region cannot tell the keys of others, or of those of another session.
func TestKeysAreNotGuessed(t *testing.T) {
	w := newStillPair(t)
	seen := map[verbs.LKey]bool{}
	const sessions, each = 8, 8
	for range sessions {
		session, err := w.a.device.NewSession(SessionConfig{})
		check(t, err)
		c, err := verbs.Open(session)
		check(t, err)
		pd, err := c.AllocPD()
		check(t, err)
		first, err := pd.AllocMR(1, verbs.AccessLocalWrite)
		check(t, err)
		for i := range verbs.LKey(each) {
			mr, err := pd.AllocMR(1, verbs.AccessLocalWrite)
			check(t, err)
			seen[mr.LKey()-first.LKey()-i<<8] = true
		}
		check(t, c.Close())
	}
	if len(seen) < sessions*each/2 {
		t.Errorf("of %d keys only %d are not what one would guess", sessions*each, len(seen))
	}
}
