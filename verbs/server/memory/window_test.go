// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

var check = errtest.Check

// TestPagesThatAreThere: pages of a region that is registered are not mapped again, and those of no other are held for
// there when it has gone.
func TestPagesThatAreThere(t *testing.T) {
	users := peer.NewUsers(peer.Limits{}, "")
	s, err := NewManager(users, slog.New(slog.DiscardHandler), new(peer.Log)).Open(User{Quota: quota.New("user", hca.Limits{}, quota.NewPool(quota.PoolLimits{}))})
	check(t, err)
	defer s.Close(true)
	defer s.Stop()
	fd, err := s.CreateFile(1 << 47)
	check(t, err)
	const size, offset = 8, 0x7f00_0000_0000
	memory, err := unix.Mmap(fd, offset, size*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(t, err)
	defer unix.Munmap(memory)
	check(t, unix.Madvise(memory, unix.MADV_POPULATE_WRITE))
	part := func(first, pages int) (unmap func(), err error) {
		m, err := s.Mapping(offset+uint64(first*pageSize), pages*pageSize)()
		return m.Unmap, err
	}
	there := func(first, pages int) bool {
		unmap, err := part(first, pages)
		if err == nil {
			unmap()
		} else if !errors.Is(err, unix.EFAULT) {
			t.Fatal(err)
		}
		return err == nil
	}
	small, err := part(5, 1)
	check(t, err)
	large, err := part(0, 4)
	check(t, err)
	check(t, unix.Madvise(memory, unix.MADV_REMOVE)) // so that a search for pages finds none
	if !there(0, 4) || !there(1, 2) {
		t.Error("the pages of the largest region are looked for")
	}
	if there(3, 2) || there(4, 1) || there(5, 1) {
		t.Error("pages of no region, or of a smaller one, are held for there")
	}
	large()
	if there(0, 4) || there(1, 1) {
		t.Error("pages are held for there without their region")
	}
	small()
}
