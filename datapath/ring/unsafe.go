// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"sync/atomic"
	"unsafe"
)

// Alloc allocates zeroed memory for a queue or a doorbell: Go memory, aligned to 128 bytes.
func Alloc(size int) []byte {
	const line = 128
	memory := make([]byte, size+line)
	start := -int(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) & (line - 1)
	return memory[start : start+size : start+size]
}

// word returns 4 bytes of memory as an atomic word. Memory from Alloc and mmap is aligned for it.
func word(memory []byte, offset int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(memory[offset : offset+4])))
}

// words64 returns memory as 64-bit words.
func words64(memory []byte, offset, count int) []atomic.Uint64 {
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(memory[offset:offset+8*count]))), count)
}
