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

// peerGroups are the supplementary groups of a socket's peer (SO_PEERGROUPS), as they were when it
// connected.
func peerGroups(fd int) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(4 * len(groups))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(unsafe.SliceData(groups))), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == unix.ERANGE && int(size) > 4*len(groups):
			groups = make([]uint32, size/4)
		case errno != 0:
			return nil, errno
		default:
			return groups[:size/4], nil
		}
	}
}
