package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// classes is where programs look for RDMA devices.
const classes = "/sys/class"

// inside is the flag by which the command starts itself in a mount namespace of its own.
const inside = "inside"

// namespaces are those that the program gets: of mounts, and, for who may not mount, of users, in which it is the
// same user.
func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // across the start of this command; not of the program
	}
	return attr
}

// giveUpRights takes back the right to mount, which the program of an ordinary user is not to have. It is the calling
// thread's, which becomes the program.
func giveUpRights() error {
	if os.Geteuid() == 0 {
		return nil
	}
	runtime.LockOSThread()
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

// showDevices puts the service's devices into the process's own /sys/class. The other classes stay as they are.
func showDevices(socket string) error {
	devices, err := describeDevices(socket)
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	others, err := os.ReadDir(classes)
	if err != nil {
		return err
	}
	// The classes as they are stay reachable by this descriptor when something is mounted over them.
	was, err := unix.Open(classes, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", classes, err)
	}
	defer unix.Close(was)
	if err := unix.Mount("roced", classes, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=16m"); err != nil {
		return fmt.Errorf("mount over %s: %w", classes, err)
	}
	for _, class := range others {
		if !strings.HasPrefix(class.Name(), "infiniband") {
			err = errors.Join(err, bindClass(was, class.Name()))
		}
	}
	return errors.Join(err, devices.write(classes))
}

// bindClass mounts a class where it was.
func bindClass(was int, name string) error {
	at := filepath.Join(classes, name)
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d/%s", was, name), at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s again: %w", at, err)
	}
	return nil
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
