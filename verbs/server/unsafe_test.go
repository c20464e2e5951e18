// SPDX-License-Identifier: Apache-2.0

package server

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// Requests of userfaultfd(2), from linux/userfaultfd.h.
const (
	uffdioAPI      = 0xc018aa3f
	uffdioRegister = 0xc020aa00
)

// absentPage is a page of memory that is not there: a reader waits until present is called, and until
// then awaitReader waits.
func absentPage(t testing.TB) (page []byte, awaitReader, present func()) {
	t.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno == unix.EPERM {
		needs.Skip(t, "userfaultfd: %v (run it as root, or sysctl -w vm.unprivileged_userfaultfd=1)", errno)
	}
	if errno != 0 {
		t.Fatal("userfaultfd:", errno)
	}
	page, err := unix.Mmap(-1, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	check(t, err)
	api := [3]uint64{0xAA}
	missing := [4]uint64{uint64(uintptr(unsafe.Pointer(&page[0]))), uint64(pageSize), 1}
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api)))
	if errno == 0 {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uffdioRegister, uintptr(unsafe.Pointer(&missing)))
	}
	if errno != 0 {
		t.Fatal("userfaultfd's ioctl:", errno)
	}
	awaitReader = func() {
		t.Helper()
		_, err := unix.Read(int(fd), make([]byte, 32)) // a struct uffd_msg
		check(t, err)
	}
	return page, awaitReader, func() { t.Helper(); check(t, unix.Close(int(fd))) }
}

// sleepOn sleeps on a word of memory while it has a value (FUTEX_WAIT), at most a second.
func sleepOn(memory []byte, value uint32) unix.Errno {
	second := unix.Timespec{Sec: 1}
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(unsafe.SliceData(memory))), 0, uintptr(value), uintptr(unsafe.Pointer(&second)), 0, 0)
	return errno
}

// wordIn is a word of memory, as the machine has it.
func wordIn(memory []byte) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(memory)))
}
