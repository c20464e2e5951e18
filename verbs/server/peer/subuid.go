// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// owners maps each uid to the user that owns it. An ordinary user owns 65,536 further uids by /etc/subuid (subuid(5)),
// which any user namespace of that user may use. They are charged to their owner.
type owners struct {
	path string // of the file; empty for none

	mu      sync.Mutex
	checked time.Time   // when the file was last checked
	seen    os.FileInfo // as it was then; nil if there was none
	ranges  []uidRange  // ordered, none within another
}

// uidRange is a range of uids, both ends included, and their owner.
type uidRange struct{ first, last, owner uint32 }

const (
	subUIDGap    = time.Second // between checks of the file
	mostSubUIDs  = 1 << 16     // lines
	longSubUIDs  = 4 << 20     // bytes of the file that are read
	noUID        = 1<<32 - 1   // (uid_t)-1, which is no user
	subUIDFields = 3           // owner, first, count
)

// of returns the owner of a uid: the uid itself, unless it is another user's further uid.
func (o *owners) of(uid uint32, now time.Time) uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.path != "" && now.Sub(o.checked) >= subUIDGap {
		o.checked = now
		o.reload()
	}
	i, found := slices.BinarySearchFunc(o.ranges, uid, func(r uidRange, uid uint32) int {
		switch {
		case r.last < uid:
			return -1
		case r.first > uid:
			return 1
		}
		return 0
	})
	if !found {
		return uid
	}
	return o.ranges[i].owner
}

// reload reads the file again if it has changed. A file that cannot be read is treated as none.
func (o *owners) reload() {
	now, err := os.Stat(o.path)
	switch {
	case err != nil:
		o.seen, o.ranges = nil, nil
		return
	case o.seen != nil && os.SameFile(o.seen, now) && o.seen.ModTime().Equal(now.ModTime()) && o.seen.Size() == now.Size():
		return
	}
	file, err := os.Open(o.path)
	if err != nil {
		return
	}
	defer file.Close()
	o.seen, o.ranges = now, readSubUIDs(io.LimitReader(file, longSubUIDs), lookUpUser)
}

// readSubUIDs reads lines of OWNER:FIRST:COUNT. The owner is a number, or a name, which is looked up. Other
// lines are ignored, as by newuidmap(1). A range that root hands out, to a container for example,
// is a user of its own: its first uid. Of ranges that overlap, the one that begins first counts.
func readSubUIDs(text io.Reader, lookUp func(name string) (uint32, bool)) (ranges []uidRange) {
	known := map[string]uint32{}
	lines := bufio.NewScanner(text)
	for lines.Scan() && len(ranges) < mostSubUIDs {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(fields) != subUIDFields {
			continue
		}
		first, wrong := strconv.ParseUint(fields[1], 10, 32)
		count, wrongToo := strconv.ParseUint(fields[2], 10, 32)
		if wrong != nil || wrongToo != nil || count == 0 || first == 0 || first+count > noUID {
			continue
		}
		owner, is := known[fields[0]]
		if !is {
			if owner, is = lookUp(fields[0]); !is {
				continue
			}
			known[fields[0]] = owner
		}
		r := uidRange{uint32(first), uint32(first + count - 1), owner}
		if owner == 0 {
			r.owner = r.first
		}
		ranges = append(ranges, r)
	}
	return apart(ranges)
}

// apart orders ranges, and removes overlaps: the earlier range keeps the common part.
func apart(ranges []uidRange) (ordered []uidRange) {
	slices.SortStableFunc(ranges, func(a, b uidRange) int { return cmp.Compare(a.first, b.first) })
	for _, r := range ranges {
		if n := len(ordered); n > 0 && r.first <= ordered[n-1].last {
			if r.last <= ordered[n-1].last {
				continue
			}
			r.first = ordered[n-1].last + 1
		}
		ordered = append(ordered, r)
	}
	return ordered
}

// lookUpUser finds a user by name or number.
func lookUpUser(name string) (uint32, bool) {
	if uid, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(uid), true
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, false
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(uid), err == nil
}
