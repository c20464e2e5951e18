// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/roced/roced/internal/journal"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace in which sockets can be opened. A thread stays inside, so CAP_SYS_ADMIN is needed
// only for Enter.
type Namespace struct {
	// calls sends functions to the thread that stays inside. It is nil for the caller's own namespace.
	calls chan func()
	id    journal.Namespace
}

// Enter enters the network namespace of a file. An empty path means the namespace of the calling thread, which needs no
// privileges; then Do must be called from threads in the same namespace.
func Enter(path string) (*Namespace, error) {
	n := &Namespace{}
	if path != "" {
		if err := n.enter(path); err != nil {
			return nil, err
		}
	}
	if err := n.Do(n.identify); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Namespace) identify() (err error) {
	n.id, err = journal.ThisNamespace()
	return err
}

func (n *Namespace) enter(path string) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w; ip netns list prints the namespaces", path, err)
	}
	defer ns.Close()
	n.calls = make(chan func())
	entered := make(chan error)
	go n.stay(ns, entered)
	if err := <-entered; err != nil {
		return explainEnter(path, err)
	}
	return nil
}

// stay runs calls on a thread inside. The thread is never unlocked, so it ends with its goroutine and is not
// reused.
func (n *Namespace) stay(ns netns.NsHandle, entered chan<- error) {
	runtime.LockOSThread()
	err := netns.Set(ns)
	entered <- err
	if err != nil {
		return
	}
	for call := range n.calls {
		call()
	}
}

// explainEnter adds the requirements of setns(2).
func explainEnter(path string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("enter network namespace %s: %w: missing CAP_SYS_ADMIN", path, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s is not the file of a network namespace: %w; ip netns list prints the namespaces", path, err)
	}
	return fmt.Errorf("enter network namespace %s: %w", path, err)
}

// Close leaves the namespace. Do must not run concurrently or be called afterwards.
func (n *Namespace) Close() {
	if n.calls != nil {
		close(n.calls)
	}
}

// Do runs fn on a thread inside the namespace, one call at a time. Goroutines that fn starts run outside.
func (n *Namespace) Do(fn func() error) error {
	if n.calls == nil {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return fn()
	}
	result := make(chan error)
	n.calls <- func() { result <- fn() }
	return <-result
}

// PortRules returns the current rules of the namespace.
func (n *Namespace) PortRules() (rules PortRules) {
	_ = n.Do(func() error { rules = ReadPortRules(); return nil })
	return rules
}

// ID returns the identity of the namespace.
func (n *Namespace) ID() journal.Namespace { return n.id }

// Check returns EXDEV for a socket that was opened in another namespace. This happens if the calling thread has changed
// its namespace since Enter(""), where an interface index denotes another interface.
func (n *Namespace) Check(fd int) error {
	cookie, err := journal.CookieOf(fd)
	if err == nil && cookie != n.id.Cookie {
		err = fmt.Errorf("%w: the calling thread is in another network namespace than when the card was opened", unix.EXDEV)
	}
	return err
}
