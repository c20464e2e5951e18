// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// MakePrivate makes all mounts of the calling thread's mount namespace private: later mounts in it are not
// visible outside, and vice versa. It needs CAP_SYS_ADMIN, and in a chroot CAP_SYS_CHROOT and /proc.
func MakePrivate() error {
	err := makePrivate()
	if errors.Is(err, unix.EINVAL) { // mount(2) changes mount points only, and / of a chroot may not be one
		err = atRoot(makePrivate)
	}
	if err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	return nil
}

func makePrivate() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }

// atRoot calls fn on another thread, whose / is the root of the caller's mount namespace: setns(2) moves it there.
func atRoot(fn func() error) error {
	namespace, err := os.Open("/proc/thread-self/ns/mnt")
	if err != nil {
		return err
	}
	defer namespace.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()             // never unlocked, so the thread ends
		err := unix.Unshare(unix.CLONE_FS) // setns requires that the thread has its own /
		if err == nil {
			err = unix.Setns(int(namespace.Fd()), unix.CLONE_NEWNS)
		}
		if err == nil {
			err = fn()
		}
		result <- err
	}()
	return <-result
}
