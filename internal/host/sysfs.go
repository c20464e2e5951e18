// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Sysfs is a private mount of the sysfs of the calling thread's network namespace. /sys does not follow
// setns(2): it shows the namespace in which it was mounted, where "eth0" may be another interface.
type Sysfs struct{ mount int }

// MountSysfs mounts the sysfs. It needs CAP_SYS_ADMIN.
func MountSysfs() (Sysfs, error) {
	context, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return Sysfs{}, fmt.Errorf("mount sysfs: %w (CAP_SYS_ADMIN is required)", err)
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return Sysfs{}, fmt.Errorf("mount sysfs: %w (CAP_SYS_ADMIN is required)", err)
	}
	mount, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return Sysfs{}, fmt.Errorf("mount sysfs: %w", err)
	}
	return Sysfs{mount}, nil
}

// Open opens a file by its path below /sys.
func (s Sysfs) Open(path string) (*os.File, error) {
	fd, err := unix.Openat(s.mount, path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Write writes a value to a file.
func (s Sysfs) Write(path, value string) error {
	file, err := s.Open(path)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(value), 0)
	return errors.Join(err, file.Close())
}

// Close unmounts the sysfs. Open files remain usable.
func (s Sysfs) Close() { _ = unix.Close(s.mount) }
