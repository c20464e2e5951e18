package server

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// newMemfd makes a memfd of a size, sealed so that nobody can change the size, and maps it.
func newMemfd(size int) (fd int, memory []byte, err error) {
	fd, err = unix.MemfdCreate("roced", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("roced", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return -1, nil, fmt.Errorf("memfd_create: %w", err)
	}
	if memory, err = sealAndMap(fd, size); err != nil {
		_ = unix.Close(fd)
		return -1, nil, fmt.Errorf("memfd of %d bytes: %w", size, err)
	}
	return fd, memory, nil
}

func sealAndMap(fd, size int) ([]byte, error) {
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return nil, err
	}
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		err = unix.Madvise(memory, unix.MADV_DONTDUMP)
	}
	return memory, err
}
