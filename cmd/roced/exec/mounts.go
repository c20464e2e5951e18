// SPDX-License-Identifier: Apache-2.0

package exec

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/roced/roced/internal/mounts"
	"golang.org/x/sys/unix"
)

// classes is the directory, apart from /dev/infiniband, where programs find RDMA devices.
const classes = "/sys/class"

// inside is the hidden flag with which the command restarts itself in a new mount namespace.
const inside = "inside"

// namespaces returns the attributes of new namespaces: a mount namespace, and for unprivileged users a user
// namespace with the same uid and gid.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // for this command after the exec; dropped before the program runs
	}
	return attr
}

// dropPrivileges drops CAP_SYS_ADMIN, which an unprivileged user's program must not inherit, and makes the program end
// with its parent. Both apply to the calling thread, which becomes the program.
func dropPrivileges() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set the parent-death signal: %w", err)
	}
	if os.Geteuid() == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop CAP_SYS_ADMIN: %w", err)
	}
	var none [2]unix.CapUserData // version 3 has two
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop CAP_SYS_ADMIN: %w", err)
	}
	return nil
}

// noNamespace adds the remedy to an error of namespace creation.
func noNamespace(err error) error {
	return fmt.Errorf("--sysfs: cannot create a mount namespace: %w; run as root, or allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), or omit --sysfs: few programs read %s", err, classes)
}

// showDevices adds the service's devices to /sys/class and /dev/infiniband of this mount namespace.
func showDevices(socket string) error {
	devices, err := describeDevices(socket)
	if err != nil {
		return err
	}
	if err := mounts.MakePrivate(); err != nil {
		return err
	}
	return errors.Join(
		replace(classes, func(*os.File) error { return devices.write(classes) }),
		replace("/dev", devices.characters),
	)
}

// replace mounts a tmpfs over a directory. The tmpfs has the same entries except those of RDMA devices, which
// fill creates; fill receives the original directory.
func replace(dir string, fill func(was *os.File) error) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	// This descriptor keeps the original directory reachable.
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	was := os.NewFile(uintptr(fd), dir)
	defer was.Close()
	if err := unix.Mount("roced", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=16m"); err != nil {
		return fmt.Errorf("mount over %s: %w", dir, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name.Name(), "infiniband") {
			err = errors.Join(err, bind(was, name.Name(), filepath.Join(dir, name.Name()), name.Type()))
		}
	}
	return errors.Join(err, fill(was))
}

// bind makes an entry of the original directory visible at a path.
func bind(was *os.File, name, at string, kind os.FileMode) error {
	from := fmt.Sprintf("/proc/self/fd/%d/%s", was.Fd(), name)
	var err error
	switch {
	case kind&os.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, at)
	case kind.IsDir():
		err = os.Mkdir(at, 0o755)
	default:
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(from, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind-mount %s: %w", at, err)
	}
	return nil
}

// characters creates the uverbs character devices, which some programs check for. Each is /dev/null.
func (t tree) characters(dev *os.File) error {
	const dir = "/dev/infiniband"
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	err := bind(dev, "null", filepath.Join(dir, "rdma_cm"), os.ModeDevice)
	for name := range t {
		if number, is := strings.CutPrefix(path.Dir(name), "infiniband_verbs/"); is && path.Base(name) == "dev" {
			err = errors.Join(err, bind(dev, "null", filepath.Join(dir, number), os.ModeDevice))
		}
	}
	return err
}

// write creates the files of the tree.
func (t tree) write(dir string) error {
	for name, content := range t {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		var err error
		if target, is := strings.CutPrefix(content, linkTo); is {
			err = os.Symlink(target, at)
		} else {
			err = os.WriteFile(at, []byte(content+"\n"), 0o444)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
