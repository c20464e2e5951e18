// SPDX-License-Identifier: Apache-2.0

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

// nobody is the uid and gid of an unprivileged user.
const nobody = 65534

// AsNobody makes the child run as an unprivileged user. It needs root.
func (c *Child) AsNobody(t *testing.T) {
	t.Helper()
	needs.Root(t)
	c.Path = "/proc/self/exe" // the test binary is in a directory of root
	c.Env = append(c.Env, "HOME=/", "XDG_RUNTIME_DIR=", "TMPDIR=/tmp")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// InUserNamespace makes the child, which is nobody, run in a new user namespace with the same uid.
func (c *Child) InUserNamespace() {
	a := c.SysProcAttr
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: nobody, HostID: nobody, Size: 1}}
	a.GidMappings = a.UidMappings
}

// AsRootOfUserNamespace makes the child, which is nobody, root of a new user and network namespace.
func (c *Child) AsRootOfUserNamespace() {
	a := c.SysProcAttr
	a.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET
	a.UidMappings = []syscall.SysProcIDMap{{HostID: nobody, Size: 1}}
	a.GidMappings = a.UidMappings
	a.Credential = &syscall.Credential{NoSetGroups: true}
}

// StartConfined starts the child where user namespaces are not permitted: in a chroot with the same files.
func (c *Child) StartConfined(t *testing.T) {
	t.Helper()
	root := NobodysDir(t)
	c.SysProcAttr.Chroot = root
	c.Dir = "/"
	c.startInMounts(t, func() error { return unix.Mount("/", root, "", unix.MS_BIND|unix.MS_REC, "") })
}

// StartInAChroot starts the child in a root directory that is not a mount point, with the machine's files. It
// needs root.
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

// StartWithoutBPF starts the child without /sys/fs/bpf, as in many containers. Call it on a thread in the
// child's network namespace.
func (c *Child) StartWithoutBPF(t *testing.T) {
	t.Helper()
	c.startInMounts(t, func() error { return unix.Mount("tmpfs", "/sys/fs", "tmpfs", unix.MS_RDONLY, "") })
}

// startInMounts starts the child in a new mount namespace, and in the network namespace of the calling
// thread.
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

// NobodysDir returns a directory owned by the unprivileged user.
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
