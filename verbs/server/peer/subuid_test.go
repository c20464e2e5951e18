// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// named looks names up, and numbers.
func named(name string) (uint32, bool) {
	uid, is := map[string]uint32{"eve": 1000, "mia": 1001, "root": 0}[name]
	if !is {
		_, err := fmt.Sscanf(name, "%d", &uid)
		is = err == nil
	}
	return uid, is
}

func TestReadSubUIDs(t *testing.T) {
	o := owners{ranges: readSubUIDs(strings.NewReader(`
eve:100000:65536
mia:165536:65536
1002:300000:1
# a comment:5:6
no number:400000:10
eve:500000
eve:600000:0
eve:x:10
eve:4294967290:100
eve:0:10
root:1000000:65536
mia:231000:100000
eve:231072:10
`), named)}
	for uid, want := range map[uint32]uint32{
		0: 0, 5: 5, 1000: 1000, 99999: 99999, 100000: 1000, 165535: 1000, 165536: 1001, 231071: 1001, 231072: 1001, 299999: 1001,
		300000: 1001, 330999: 1001, 331000: 331000, 400000: 400000, 500000: 500000, 600000: 600000, 4294967290: 4294967290,
		1000000: 1000000, 1065535: 1000000, 1065536: 1065536,
	} {
		if got := o.of(uid, time.Now()); got != want {
			t.Errorf("uid %d is %d's, want %d", uid, got, want)
		}
	}
}

// TestSubUIDsAreBounded: a file may be as long as it likes.
func TestSubUIDsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range mostSubUIDs + 10 {
		fmt.Fprintf(&text, "eve:%d:1\n", 100000+2*i)
	}
	if n := len(readSubUIDs(strings.NewReader(text.String()), named)); n != mostSubUIDs {
		t.Errorf("%d ranges", n)
	}
}

// TestSubUIDsFollowTheFile: it may be missing, and is read again when it has changed.
func TestSubUIDsFollowTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subuid")
	o := owners{path: path}
	now := time.Now()
	after := func(gap time.Duration) uint32 {
		now = now.Add(gap)
		return o.of(100005, now)
	}
	if owner := after(0); owner != 100005 {
		t.Errorf("without the file: %d", owner)
	}
	check(t, os.WriteFile(path, []byte("1000:100000:10\n"), 0o644))
	if owner := after(subUIDGap - 1); owner != 100005 {
		t.Errorf("checked too early: %d", owner)
	}
	if owner := after(1); owner != 1000 {
		t.Errorf("with it: %d", owner)
	}
	check(t, os.WriteFile(path, []byte("1001:100000:100\n"), 0o644))
	if owner := after(subUIDGap); owner != 1001 {
		t.Errorf("changed: %d", owner)
	}
	check(t, os.Remove(path))
	if owner := after(subUIDGap); owner != 100005 {
		t.Errorf("removed: %d", owner)
	}
}
