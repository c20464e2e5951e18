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

// classes is where programs look for RDMA devices, beside /dev/infiniband.
const classes = "/sys/class"

// inside is the flag by which the command starts itself in a mount namespace of its own.
const inside = "inside"

// namespaces are those that the program gets: of mounts, and, for who may not mount, of users, in which it is the
// same user.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // across the start of this command; not of the program
	}
	return attr
}

// giveUpRights takes back the right to mount, which the program of an ordinary user is not to have, and has the program
// end with the command that has started this one. Both are the calling thread's, which becomes the program.
func giveUpRights() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the command: %w", err)
	}
	if os.Geteuid() == 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up CAP_SYS_ADMIN: %w", err)
	}
	var none [2]unix.CapUserData // version 3 has two
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("give up CAP_SYS_ADMIN: %w", err)
	}
	return nil
}

// noNamespace says what to do where the kernel or a sandbox refuses.
func noNamespace(err error) error {
	return fmt.Errorf("--sysfs needs a mount namespace, as root or as a user who may have user namespaces: %w; look at sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone (or apparmor_restrict_unprivileged_userns), or leave --sysfs out: few programs read %s", err, classes)
}

// showDevices puts the service's devices into the process's own /sys/class and /dev/infiniband. All else stays as it is.
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

// replace mounts a folder of the process's own over one, with what was there, except what is of RDMA devices: fill makes
// that, and has the folder as it was.
func replace(dir string, fill func(was *os.File) error) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	// What was there stays reachable by this descriptor when something is mounted over it.
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

// bind shows at a path what a folder had.
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
		return fmt.Errorf("mount %s again: %w", at, err)
	}
	return nil
}

// characters makes the devices' files of commands, which some programs look for. Each is /dev/null.
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

// write makes the files of a tree.
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
