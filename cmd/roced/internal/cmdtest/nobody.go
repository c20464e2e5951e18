package cmdtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/roced/roced/internal/mounts"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// nobody is the number of a user, and of a group, without any privilege.
const nobody = 65534

// AsNobody has the child be an ordinary user, without any capability. It needs root.
func (c *Child) AsNobody(t *testing.T) {
	t.Helper()
	needs.Root(t)
	c.Path = "/proc/self/exe" // since the test's binary is in a directory of root's
	c.Env = append(c.Env, "HOME=/", "XDG_RUNTIME_DIR=", "TMPDIR=/tmp")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// InUserNamespace has the child, which is nobody, be in a user namespace of its own, in which it is nobody too.
func (c *Child) InUserNamespace() {
	a := c.SysProcAttr
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: nobody, Size: 1}}
	a.GidMappings = a.UidMappings
}

// AsRootOfUserNamespace has the child, which is nobody, be root of a user namespace and a network namespace of its own.
func (c *Child) AsRootOfUserNamespace() {
	a := c.SysProcAttr
	a.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	a.UidMappings = []syscall.SysProcIDMap{{HostID: nobody, Size: 1}}
	a.GidMappings = a.UidMappings
	a.Credential = &syscall.Credential{NoSetGroups: true}
}

// StartConfined starts the child where it gets no user namespace: its root directory is not the machine's, though it
// has the same files.
func (c *Child) StartConfined(t *testing.T) {
	t.Helper()
	root := NobodysDir(t)
	c.SysProcAttr.Chroot = root
	c.Dir = "/"
	c.startInMounts(t, func() error { return unix.Mount("/", root, "", unix.MS_BIND|unix.MS_REC, "") })
}

// StartInAChroot starts the child in a root directory that is no mount point, with the machine's files. It needs root.
func (c *Child) StartInAChroot(t *testing.T) {
	t.Helper()
	root := t.TempDir()
	c.startInMounts(t, func() error {
		entries, err := os.ReadDir("/")
		for _, entry := range entries {
			path := filepath.Join(root, entry.Name())
			if entry.IsDir() {
				err = errors.Join(err, os.Mkdir(path, 0o755), unix.Mount("/"+entry.Name(), path, "", unix.MS_BIND|unix.MS_REC, ""))
			} else if target, linkErr := os.Readlink("/" + entry.Name()); linkErr == nil {
				err = errors.Join(err, os.Symlink(target, path))
			}
		}
		c.SysProcAttr, c.Dir = &syscall.SysProcAttr{Chroot: root}, "/"
		return err
	})
}

// StartWithoutBPF starts the child where there is no /sys/fs/bpf, as in many containers. Call it on a thread in the
// network namespace that the child is to be in.
func (c *Child) StartWithoutBPF(t *testing.T) {
	t.Helper()
	c.startInMounts(t, func() error { return unix.Mount("tmpfs", "/sys/fs", "tmpfs", unix.MS_RDONLY, "") })
}

// startInMounts starts the child in a mount namespace of its own, and in the network namespace of the calling thread.
func (c *Child) startInMounts(t *testing.T, mount func() error) {
	t.Helper()
	c.startOnThread(t, func() error {
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), mounts.MakePrivate())
		if err == nil {
			err = mount()
		}
		return err
	})
}

// NobodysDir is a directory that nobody may write to.
func NobodysDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		return dir
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	for name := dir; strings.HasPrefix(name, os.TempDir()+"/"); name = filepath.Dir(name) {
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
