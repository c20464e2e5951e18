// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a named network namespace with lo up.
type Namespace struct {
	name   string
	handle netns.NsHandle
	nl     *netlink.Handle
	close  func() error
}

// created counts the namespaces of this process, to make their names unique.
var created atomic.Uint32

// New creates a namespace named PREFIX-PID-COUNTER. It needs CAP_SYS_ADMIN.
func New(prefix string) (*Namespace, error) {
	if prefix == "" || strings.Contains(prefix, "/") {
		return nil, fmt.Errorf("namespace prefix %q: %w", prefix, unix.EINVAL)
	}
	ns := &Namespace{name: fmt.Sprintf("%s-%d-%d", prefix, os.Getpid(), created.Add(1))}
	if err := ns.open(); err != nil {
		return nil, fmt.Errorf("network namespace %s: %w", ns.name, err)
	}
	ns.close = sync.OnceValue(ns.remove)
	if err := ns.Do(ns.setUp); err != nil {
		return nil, errors.Join(fmt.Errorf("network namespace %s: %w", ns.name, err), ns.Close())
	}
	return ns, nil
}

// open creates the namespace, its name and its descriptors.
func (ns *Namespace) open() (err error) {
	if ns.handle, err = createNamed(ns.Path()); err != nil {
		return err
	}
	ns.nl, err = netlink.NewHandleAt(ns.handle, unix.NETLINK_ROUTE, unix.NETLINK_GENERIC)
	if err != nil {
		return errors.Join(err, ns.handle.Close(), unname(ns.Path()))
	}
	return nil
}

// setUp runs inside the new namespace.
func (ns *Namespace) setUp() error {
	// Duplicate address detection is off for a link only if it is off in "all" and for the link,
	// which inherits "default".
	for _, scope := range []string{"all", "default"} {
		path := filepath.Join("/proc/sys/net/ipv6/conf", scope, "accept_dad")
		if err := os.WriteFile(path, []byte("0"), 0o644); err != nil {
			return err
		}
	}
	return ns.bringUp("lo")
}

// Name returns the name that ip-netns(8) shows.
func (ns *Namespace) Name() string { return ns.name }

// Path returns the file of the namespace.
func (ns *Namespace) Path() string { return filepath.Join(runDir, ns.name) }

// FD returns a descriptor of the namespace, valid until Close.
func (ns *Namespace) FD() int { return int(ns.handle) }

// Netlink returns a handle whose sockets are in the namespace, valid until Close.
func (ns *Namespace) Netlink() *netlink.Handle { return ns.nl }

// Close removes the namespace. The kernel destroys it when no socket is left in it. Further calls return the
// result of the first.
func (ns *Namespace) Close() error { return ns.close() }

func (ns *Namespace) remove() error {
	ns.nl.Close()
	if err := errors.Join(ns.handle.Close(), unname(ns.Path())); err != nil {
		return fmt.Errorf("remove network namespace %s: %w", ns.name, err)
	}
	return nil
}
