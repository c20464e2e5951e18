// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// detach atomically replaces shared memory by the program's own. The given pieces keep their contents, the rest reads
// as zeros.
func (s shared) detach(pieces [][]byte) error {
	size := uintptr(len(s))
	at := unsafe.Pointer(unsafe.SliceData(s))
	own, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return err
	}
	copied := unsafe.Slice((*byte)(own), len(s))
	for _, piece := range pieces {
		if len(piece) == 0 {
			continue
		}
		offset := uintptr(unsafe.Pointer(unsafe.SliceData(piece))) - uintptr(at)
		copy(copied[offset:], piece)
	}
	if _, err := unix.MremapPtr(own, size, at, size, unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED); err != nil {
		_ = unix.MunmapPtr(own, size)
		return err
	}
	return nil
}
