// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/memory"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// pageTables returns the size of this process's page tables, in bytes (VmPTE).
func pageTables(t testing.TB) (size uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	check(t, err)
	_, after, _ := strings.Cut(string(text), "VmPTE:")
	_, err = fmt.Sscanf(after, "%d kB", &size)
	check(t, err)
	return size << 10
}

// TestPageTablesAreLimited: a user that registers and deregisters a page for each page table of each window makes the service's
// page tables grow no further than the user's limit of memory. With the last region of a window its page tables are free.
func TestPageTablesAreLimited(t *testing.T) {
	const most = 16 << 20
	r := newRig(t, Config{Limits: peer.Limits{Limits: hca.Limits{Memory: most}}, PrivilegedGroup: -1})
	r.a.open(t)
	other := r.a.openedAs(t, 4711)
	otherPD, otherFile := other.allocPD(), other.shareMemory()
	c := r.a.opened(t)
	pd, fd := c.allocPD(), c.shareMemory()
	before, used := pageTables(t), r.a.usage()
	register := func(offset uint64) (mr provider.Handle, err error) {
		t.Helper()
		_, err = unix.Pwrite(fd, []byte{1}, int64(offset))
		check(t, err)
		packet, err := proto.RegMR.EncodeRequest(1, &proto.RegMRRequest{PD: pd, Length: pageSize, Offset: offset})
		check(t, err)
		check(t, c.Send(packet))
		m, _, err := c.Receive()
		check(t, err)
		if m.Kind == proto.Failure {
			cause, err := proto.DecodeFailure(m.Body)
			check(t, err)
			return mr, cause
		}
		grant, err := proto.RegMR.DecodeGrant(m.Body, nil)
		check(t, err)
		check(t, unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(offset), int64(pageSize)))
		return grant.MR, nil
	}
	var held []provider.Handle // one in each window
	var refused error
	const windows = 500 // with pages of 4 KiB they would have 66 MB of page tables, with 16 KiB 25 MB, with 64 KiB 66 MB
	for window := uint64(0); window < windows && refused == nil; window++ {
		for offset := uint64(0); offset < memory.LeastWindow && refused == nil; offset += memory.TableSpan() {
			mr, err := register(window*memory.LeastWindow + offset)
			if refused = err; err == nil && offset == 0 {
				held = append(held, mr)
			} else if err == nil {
				ask(c, proto.DeregMR, &provider.DeregMRRequest{MR: mr})
			}
		}
	}
	checkLimit(t, refused)
	if grown := pageTables(t) - before; grown > most+1<<20 {
		t.Errorf("the page tables have grown by %d bytes, and the user may have %d", grown, most)
	}
	_, err := unix.Pwrite(otherFile, []byte{1}, 0)
	check(t, err)
	ask(other, proto.RegMR, &proto.RegMRRequest{PD: otherPD, Length: pageSize})
	for _, mr := range held {
		ask(c, proto.DeregMR, &provider.DeregMRRequest{MR: mr})
	}
	if now := r.a.usage(); now.Memory != used.Memory {
		t.Errorf("%d bytes are used, %d were before", now.Memory, used.Memory)
	}
}

// checkLimit checks that an error is a limit's. With pages of 4 KiB a page table is what does not fit, and is named; with
// others it may be the region's own page.
func checkLimit(t *testing.T, err error) {
	t.Helper()
	if !strings.Contains(fmt.Sprint(err), verbs.ErrLimit.Error()) || pageSize == 4096 && !strings.Contains(fmt.Sprint(err), "page tables") {
		t.Errorf("%v", err)
	}
}
