// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"golang.org/x/sys/unix"
)

// shared is the memory that the service shares with the program, mapped. It is a proto.Memory.
type shared []byte

// mapShared maps the service's memfd.
func mapShared(fd int, size uint64) (shared, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || uint64(stat.Size) < size {
		return nil, fmt.Errorf("%w: a memory of %d bytes in a file of %d (%v)", proto.ErrMalformed, size, stat.Size, err)
	}
	memory, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%w: map %d bytes of address space: %w; check ulimit -v", verbs.ErrHost, size, err)
	}
	_ = unix.Madvise(memory, unix.MADV_DONTDUMP) // core dumps are optional
	return memory, nil
}

// At implements proto.Memory.
func (s shared) At(p proto.Place) ([]byte, error) { return p.Of(s) }

// PlaceOf implements proto.Memory: a client never sends places.
func (s shared) PlaceOf([]byte) (proto.Place, error) {
	return proto.Place{}, fmt.Errorf("%w: a client grants no memory", proto.ErrMalformed)
}

func (s shared) unmap() { _ = unix.Munmap(s) }
