package lab

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// Do runs fn inside the namespace, on the caller's goroutine and a thread of its
// own; goroutines that fn starts are outside. Sockets that fn opens stay in the
// namespace. Calls may nest.
//
// Should the way back fail, the error says so and the goroutine stays locked to the
// thread, which then ends with it.
func (ns *Namespace) Do(fn func() error) error {
	return onThread(func() error {
		if err := netns.Set(ns.handle); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", ns.name, err)
		}
		return fn()
	})
}

// onThread locks the goroutine to its thread while fn runs, and puts the thread
// back into the network namespace that it was in, also when fn panics or exits.
func onThread(fn func() error) (err error) {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("get network namespace: %w", err)
	}
	defer func() {
		defer home.Close()
		if back := netns.Set(home); back != nil {
			err = errors.Join(err, fmt.Errorf("go back to network namespace: %w", back))
			return
		}
		runtime.UnlockOSThread()
	}()
	return fn()
}
