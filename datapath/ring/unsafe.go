// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"sync/atomic"
	"unsafe"
)

// Alloc allocates zeroed Go memory for a queue or a doorbell. It is aligned to 128 bytes.
func Alloc(size int) []byte {
	const line = 128
	memory := make([]byte, size+line)
	start := -int(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) & (line - 1)
	return memory[start : start+size : start+size]
}

// word returns the 4 bytes at an offset as an atomic word. memory must be aligned, as that of Alloc and mmap is.
func word(memory []byte, offset int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(memory[offset : offset+4])))
}

// words64 returns count 64-bit words at an offset. memory must be aligned, as that of Alloc and mmap is.
func words64(memory []byte, offset, count int) []atomic.Uint64 {
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(memory[offset:offset+8*count]))), count)
}
