// SPDX-License-Identifier: Apache-2.0

package server

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendNow sends to a socket without waiting. The card calls it between packets, so it does without the
// runtime's preparations for a system call that waits.
func sendNow(fd int, data []byte) unix.Errno {
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	return errno
}
