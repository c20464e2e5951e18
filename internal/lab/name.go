// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// runDir is the directory of ip-netns(8).
const runDir = "/run/netns"

// createNamed creates a network namespace and binds it to path.
func createNamed(path string) (netns.NsHandle, error) {
	if err := prepareRunDir(); err != nil {
		return netns.None(), err
	}
	ns := netns.None()
	err := onThread(func() (err error) {
		if ns, err = netns.New(); err != nil {
			return fmt.Errorf("unshare: %w", err)
		}
		return name(path)
	})
	if err != nil && ns.IsOpen() {
		err = errors.Join(err, ns.Close())
	}
	return ns, err
}

// name binds path to the thread's network namespace.
func name(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return err
	}
	file.Close()
	if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
		return errors.Join(&os.PathError{Op: "bind mount", Path: path, Err: err}, os.Remove(path))
	}
	return nil
}

// unname removes the binding and the file at path.
func unname(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL {
		return &os.PathError{Op: "unmount", Path: path, Err: err}
	}
	return os.Remove(path)
}

// prepareRunDir makes the directory a shared mount point, as ip-netns(8) does: a name must be removed in
// every mount namespace, or its network namespace continues to exist. The lock prevents two processes from
// mounting at the same time.
func prepareRunDir() error {
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(runDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", runDir, err)
	}
	err = unix.Mount("", runDir, "", unix.MS_SHARED|unix.MS_REC, "")
	if err == unix.EINVAL { // not yet a mount point
		if err = unix.Mount(runDir, runDir, "", unix.MS_BIND|unix.MS_REC, ""); err == nil {
			err = unix.Mount("", runDir, "", unix.MS_SHARED|unix.MS_REC, "")
		}
	}
	if err != nil {
		return fmt.Errorf("share %s: %w", runDir, err)
	}
	return nil
}
