// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"sync"

	"github.com/roced/roced/internal/kernel"
	"golang.org/x/sys/unix"
)

// newMemfd makes a memfd of a size, sealed against changes of the size, and maps it.
func newMemfd(size int) (fd int, memory []byte, err error) {
	if fd, err = sealedMemfd(size); err != nil {
		return -1, nil, err
	}
	if memory, err = mapWhole(fd, size); err != nil {
		_ = unix.Close(fd)
		return -1, nil, fmt.Errorf("map a memfd of %d bytes: %w", size, err)
	}
	return fd, memory, nil
}

// sealedMemfd makes a memfd of a size, sealed against changes of the size and further seals.
func sealedMemfd(size int) (fd int, err error) {
	fd, err = unix.MemfdCreate("roced", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("roced", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if err = extend(fd, uint64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("memfd of %d bytes: %w", size, err)
	}
	return fd, nil
}

// CheckFileSize returns EFBIG if a hard limit of file sizes prevents this process from making process files as large as its own
// address space. A program needs one to register its memory.
func CheckFileSize() error {
	fd, err := sealedMemfd(addressSpace())
	if err == nil {
		return unix.Close(fd)
	}
	if errors.Is(err, unix.EFBIG) {
		return err
	}
	return nil
}

// addressSpace returns the size of this process's address space in bytes, a power of two: its first stack is near the end.
func addressSpace() int {
	const usual, startStack = 1 << 47, 28 // the field of proc_pid_stat(5), counted from 1
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return usual
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // from field 3 on
	if len(fields) <= startStack-3 {
		return usual
	}
	stack, err := strconv.ParseUint(string(fields[startStack-3]), 10, 64)
	if err != nil || stack < 1<<32 {
		return usual
	}
	return 1 << bits.Len64(stack)
}

// CheckKernel returns an error if the running kernel is too old for the service: it cannot make pages of memory without touching them.
func CheckKernel() error {
	page, err := unix.Mmap(-1, 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("map a page: %w", err)
	}
	defer unix.Munmap(page)
	return kernel.Explain(unix.Madvise(page, unix.MADV_POPULATE_WRITE), "the service")
}

// fileSize serialises changes of the process's limit of file sizes.
var fileSize sync.Mutex

// extend sets the size of a memfd, which is sparse. A limit of file sizes (RLIMIT_FSIZE) counts for it too: extend raises
// the limit for that moment, and restores it, since programs that this process starts inherit it.
func extend(fd int, size uint64) error {
	fileSize.Lock()
	defer fileSize.Unlock()
	err := unix.Ftruncate(fd, int64(size))
	if !errors.Is(err, unix.EFBIG) {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	raised := unix.Rlimit{Cur: size, Max: max(size, limit.Max)}
	if unix.Setrlimit(unix.RLIMIT_FSIZE, &raised) != nil {
		return fmt.Errorf("%w: the limit of file sizes is %d bytes, also for this sparse file in memory; raise it (ulimit -f, LimitFSIZE=)", err, limit.Max)
	}
	return errors.Join(unix.Ftruncate(fd, int64(size)), unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
}

func mapWhole(fd, size int) ([]byte, error) {
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		err = unix.Madvise(memory, unix.MADV_DONTDUMP)
	}
	return memory, err
}
