package hca

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// RunIn runs fn on a thread inside a network namespace, named by its file. Sockets
// that fn opens stay in it, goroutines that it starts are outside. The thread is not
// used for anything else afterwards: it ends with its goroutine. With no file it is
// the caller's own thread, which takes no privilege.
func RunIn(path string, fn func() error) error {
	if path == "" {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return fn()
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w; ip netns list shows what there is", path, err)
	}
	defer ns.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(ns); err != nil {
			result <- explainEnter(path, err)
			return
		}
		result <- fn()
	}()
	return <-result
}

// explainEnter says what setns(2) wanted.
func explainEnter(path string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("enter network namespace %s: %w: it needs CAP_SYS_ADMIN", path, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s is not the file of a network namespace: %w; ip netns list shows those there are", path, err)
	}
	return fmt.Errorf("enter network namespace %s: %w", path, err)
}
