// SPDX-License-Identifier: Apache-2.0

package conn

import "unsafe"

// tailSize returns the number of bytes at the end of memory that a single aligned store can write: 8, 4, 2 or 1. memory
// must not be empty.
func tailSize(memory []byte) int {
	end := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) + uintptr(len(memory))
	for size := 8; size > 1; size /= 2 {
		if size <= len(memory) && end%uintptr(size) == 0 {
			return size
		}
	}
	return 1
}
