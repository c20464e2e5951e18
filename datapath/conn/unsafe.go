package conn

import "unsafe"

// tailSize is how many of the last bytes of memory one store can write: a word of 8, 4 or 2 bytes if one ends there, else
// one byte. Memory is not empty.
func tailSize(memory []byte) int {
	end := uintptr(unsafe.Pointer(unsafe.SliceData(memory))) + uintptr(len(memory))
	for size := 8; size > 1; size /= 2 {
		if size <= len(memory) && end%uintptr(size) == 0 {
			return size
		}
	}
	return 1
}
