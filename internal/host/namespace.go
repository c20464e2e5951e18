package host

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/roced/roced/internal/journal"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace to open sockets in; they stay in it. A thread stays inside, so
// that CAP_SYS_ADMIN is needed only once.
type Namespace struct {
	// calls are run by a thread that stays inside. It is nil for the caller's own namespace.
	calls chan func()
	id    journal.Namespace
}

// Enter enters a network namespace, named by its file. If path is empty, it is the namespace of the
// calling thread: that takes no privilege, but Do must then be called from threads in the same one.
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
		return fmt.Errorf("network namespace %s: %w; ip netns list shows the namespaces", path, err)
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

// stay runs calls on a thread inside. The thread is never unlocked, so it ends with its goroutine
// and is not used again.
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

// explainEnter adds what setns(2) needs.
func explainEnter(path string, err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("enter network namespace %s: %w: it needs CAP_SYS_ADMIN", path, err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%s is not the file of a network namespace: %w; ip netns list shows the namespaces", path, err)
	}
	return fmt.Errorf("enter network namespace %s: %w", path, err)
}

// Close leaves the namespace. No Do may run or follow.
func (n *Namespace) Close() {
	if n.calls != nil {
		close(n.calls)
	}
}

// Do runs fn on a thread inside the namespace, one call at a time. Goroutines that fn starts run
// outside.
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

// PortRules are the namespace's, as of now.
func (n *Namespace) PortRules() (rules PortRules) {
	_ = n.Do(func() error { rules = ReadPortRules(); return nil })
	return rules
}

// ID identifies the namespace.
func (n *Namespace) ID() journal.Namespace { return n.id }

// Check refuses a socket that was opened in another namespace, with EXDEV. That happens if the
// calling thread has changed its namespace since Enter(""); an interface index names another
// interface there.
func (n *Namespace) Check(fd int) error {
	cookie, err := journal.CookieOf(fd)
	if err == nil && cookie != n.id.Cookie {
		err = fmt.Errorf("%w: the calling thread is in another network namespace than when the card was opened", unix.EXDEV)
	}
	return err
}
