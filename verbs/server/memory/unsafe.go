// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// What x/sys does not have of userfaultfd(2), from linux/userfaultfd.h.
const (
	uffdUserModeOnly    = 1
	uffdAPI             = 0xaa
	uffdFeatureSIGBUS   = 1 << 7
	uffdFeatureShmem    = 1 << 5
	uffdRegisterMissing = 1 << 0
	uffdioAPI           = 0xc018aa3f
	uffdioRegister      = 0xc020aa00
)

// openUserfaultfd opens a userfaultfd that needs no privilege, and has the faults that it is for be signals.
func openUserfaultfd() (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	api := struct{ api, features, ioctls uint64 }{uffdAPI, uffdFeatureSIGBUS | uffdFeatureShmem, 0}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
		_ = unix.Close(int(fd))
		return -1, errno
	}
	return int(fd), nil
}

// registerMissing has a userfaultfd be for the pages of a mapping that are missing.
func registerMissing(fd int, memory []byte) unix.Errno {
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
	r := struct{ start, length, mode, ioctls uint64 }{start, uint64(len(memory)), uffdRegisterMissing, 0}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uffdioRegister, uintptr(unsafe.Pointer(&r)))
	return errno
}
