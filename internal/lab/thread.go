// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// Do runs fn inside the namespace, on the caller's goroutine, which is locked to its thread
// meanwhile. Goroutines that fn starts run outside. Sockets that fn opens stay in the namespace.
// Calls may nest.
//
// If the thread cannot return to its namespace, Do returns an error and the goroutine stays locked
// to the thread, which then ends with it.
func (ns *Namespace) Do(fn func() error) error {
	return onThread(func() error {
		if err := netns.Set(ns.handle); err != nil {
			return fmt.Errorf("enter network namespace %s: %w", ns.name, err)
		}
		return fn()
	})
}

// onThread locks the goroutine to its thread while fn runs, and then returns the thread to its network
// namespace, also if fn panics or exits.
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
			err = errors.Join(err, fmt.Errorf("return to network namespace: %w", back))
			return
		}
		runtime.UnlockOSThread()
	}()
	return fn()
}
