// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ringMemory is a mapped ring and the offsets of its parts (XDP_MMAP_OFFSETS).
type ringMemory struct {
	mapping []byte
	offsets unix.XDPRingOffset
}

// producerIn returns a producer of a mapped ring. The mapping must outlive it.
func producerIn[T any](m ringMemory, entries uint32) producer[T] {
	return producer[T]{
		entries: entriesIn[T](m, entries),
		mask:    entries - 1,
		next:    m.word(m.offsets.Producer).Load(),
		index:   m.word(m.offsets.Producer),
		peer:    m.word(m.offsets.Consumer),
		flags:   m.word(m.offsets.Flags),
	}
}

// consumerIn returns a consumer of a mapped ring. The mapping must outlive it.
func consumerIn[T any](m ringMemory, entries uint32) consumer[T] {
	return consumer[T]{
		entries: entriesIn[T](m, entries),
		mask:    entries - 1,
		next:    m.word(m.offsets.Consumer).Load(),
		index:   m.word(m.offsets.Consumer),
		peer:    m.word(m.offsets.Producer),
	}
}

func (m ringMemory) word(offset uint64) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&m.mapping[offset]))
}

func entriesIn[T any](m ringMemory, entries uint32) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(&m.mapping[m.offsets.Desc])), entries)
}

// ringLength returns the number of bytes to map for a ring.
func ringLength[T any](offsets unix.XDPRingOffset, entries uint32) uint64 {
	var entry T
	return offsets.Desc + uint64(entries)*uint64(unsafe.Sizeof(entry))
}

// address returns the address of mapped memory, for the kernel.
func address(memory []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&memory[0]))) }

// setOption calls setsockopt(2) at level SOL_XDP.
func setOption[T any](fd, option int, value T) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// getOption calls getsockopt(2) at level SOL_XDP.
func getOption[T any](fd, option int) (value T, err error) {
	length := uint32(unsafe.Sizeof(value))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_XDP, uintptr(option),
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return value, errno
	}
	return value, nil
}
