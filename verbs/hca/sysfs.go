//go:build linux

package hca

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sysfs is a private mount of the sysfs of the calling thread's network namespace. /sys does not
// follow setns: it shows the namespace that it was mounted in, where "eth0" may be another
// interface.
type sysfs struct{ mount int }

func mountSysfs() (sysfs, error) {
	context, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return sysfs{}, fmt.Errorf("mount sysfs: %w (it needs CAP_SYS_ADMIN)", err)
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return sysfs{}, fmt.Errorf("mount sysfs: %w (it needs CAP_SYS_ADMIN)", err)
	}
	mount, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return sysfs{}, fmt.Errorf("mount sysfs: %w", err)
	}
	return sysfs{mount}, nil
}

func (s sysfs) open(path string) (*os.File, error) {
	fd, err := unix.Openat(s.mount, path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (s sysfs) write(path, value string) error {
	file, err := s.open(path)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(value), 0)
	return errors.Join(err, file.Close())
}

func (s sysfs) close() { _ = unix.Close(s.mount) }
