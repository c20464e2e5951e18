// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// TestAddressSpaces: a process file is as large as the address space of its process, of 39 to 52 bits on arm64 and 47 to
// 56 on x86-64. Regions end at its end at the latest.
func TestAddressSpaces(t *testing.T) {
	r := newRig(t, anyone)
	for _, bits := range []int{39, 42, 47, 48, 52, 56} {
		t.Run(fmt.Sprint(bits, " bits"), func(t *testing.T) {
			end := uint64(1) << bits
			c := r.a.opened(t)
			pd, fd := c.allocPD(), c.shareSpace(end)
			top := end - uint64(pageSize)
			memory := mapOwn(t, fd, int64(top), pageSize)
			ask(c, proto.RegMR, &proto.RegMRRequest{PD: pd, Access: fullAccess, Offset: top, Length: pageSize})
			refusedFirst(c, "above", proto.RegMR, &proto.RegMRRequest{PD: pd, Offset: top, Length: pageSize + 1}, verbs.ErrInvalid, unix.EINVAL)
			var is unix.Stat_t
			check(t, unix.Fstat(memory.fd, &is))
			if is.Size != int64(end) || is.Blocks*512 != int64(pageSize) {
				t.Errorf("the file has %d bytes in %d blocks", is.Size, is.Blocks)
			}
		})
	}
}

// TestWrongAddressSpaces: a process file has whole pages, and no more than a process has addresses.
func TestWrongAddressSpaces(t *testing.T) {
	c := newRig(t, anyone).a.opened(t)
	for _, size := range []uint64{0, 1, testSpace - 1, proto.MaxProcessFile + uint64(pageSize), 1 << 63, math.MaxUint64} {
		refusedFirst(c, fmt.Sprint(size), proto.ShareMemory, &proto.ShareMemoryRequest{Size: size}, verbs.ErrInvalid, unix.EINVAL)
	}
	c.shareSpace(uint64(pageSize))
}
