package server

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// newMemfd makes a memfd of a size, sealed so that nobody can change the size, and maps it.
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

// sealedMemfd makes a memfd of a size, sealed so that nobody can change the size or seal it further.
func sealedMemfd(size int) (fd int, err error) {
	fd, err = unix.MemfdCreate("roced", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("roced", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if err = unix.Ftruncate(fd, int64(size)); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("memfd of %d bytes: %w", size, err)
	}
	return fd, nil
}

func mapWhole(fd, size int) ([]byte, error) {
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err == nil {
		err = unix.Madvise(memory, unix.MADV_DONTDUMP)
	}
	return memory, err
}
