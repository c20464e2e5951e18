// SPDX-License-Identifier: Apache-2.0

package futex

import (
	"math"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const wake = 1 // FUTEX_WAKE, from linux/futex.h

// Wake wakes all threads that sleep on a word, without blocking. The engine calls it between packets, so it
// skips the runtime's preparation for blocking system calls.
func Wake(word *atomic.Uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wake, math.MaxInt32, 0, 0, 0)
}
