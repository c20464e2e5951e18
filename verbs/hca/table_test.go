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
