// SPDX-License-Identifier: Apache-2.0

package handles

import (
	"slices"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

var check, refused = errtest.Check, errtest.Refused

// A place is reused after all others, and then by other handles, until its generations start again; never by handle 0.
func TestTableHandles(t *testing.T) {
	table := NewTable[int]("thing", quota.PDs, quota.Limits{PDs: 3}, nil)
	seen := map[provider.Handle]bool{0: true}
	for range 3 * (datapath.HandleGenerations - 1) {
		handle, err := table.Add(new(int))
		check(t, err)
		if seen[handle] {
			t.Fatalf("handle %#x again, after %d", handle, len(seen))
		}
		seen[handle] = true
		if _, err := table.Get(handle); err != nil {
			t.Fatal(err)
		}
		table.Remove(handle)
		_, err = table.Get(handle)
		refused(t, err, verbs.ErrObjectClosed, "the thing")
	}
	again, err := table.Add(new(int))
	check(t, err)
	if !seen[again] || again == 0 {
		t.Errorf("got handle %#x after all were used", again)
	}
	for _, none := range []provider.Handle{0, 1, 5, provider.Handle(datapath.HandleFor(3, 1))} {
		_, err := table.Get(none)
		refused(t, err, verbs.ErrInvalid, "no such thing")
	}
}

// From starts at a place, and skips free places.
func TestTableFrom(t *testing.T) {
	table := NewTable[int]("thing", quota.PDs, quota.Limits{PDs: 5}, nil)
	var all []provider.Handle
	for i := range 5 {
		handle, err := table.Add(&i)
		check(t, err)
		all = append(all, handle)
	}
	table.Remove(all[3])
	var found []int
	for handle, object := range table.From(1) {
		if Place(handle) != uint32(*object) {
			t.Errorf("got handle %#x of object %d", handle, *object)
		}
		if found = append(found, *object); *object == 4 {
			break
		}
	}
	if want := []int{1, 2, 4}; !slices.Equal(found, want) || table.Len() != 4 {
		t.Errorf("objects %v of %d, want %v", found, table.Len(), want)
	}
}

// The objects of a session are no longer counted for its user when they are removed, or the table is closed.
func TestTableQuota(t *testing.T) {
	q := quota.New("a user", quota.Limits{PDs: 2}, nil)
	table := NewTable[int]("thing", quota.PDs, quota.Limits{PDs: 5}, q)
	handle, err := table.Add(new(int))
	check(t, err)
	_, err = table.Add(new(int))
	check(t, err)
	_, err = table.Add(new(int))
	refused(t, err, verbs.ErrLimit, "a user has 2 things")
	table.Remove(handle)
	if used := q.Used().PDs; used != 1 {
		t.Errorf("%d used after a removal, want 1", used)
	}
	table.Close()
	if used := q.Used().PDs; used != 0 {
		t.Errorf("%d used after Close, want 0", used)
	}
}
