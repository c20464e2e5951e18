// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roced/roced/internal/kernel"
	"golang.org/x/sys/unix"
)

// Namespace identifies a network namespace until the machine restarts.
type Namespace struct {
	Cookie uint64 // socket(7), SO_NETNS_COOKIE: never reused
	Inode  uint64 // namespaces(7): reused after the namespace was destroyed
}

// ThisNamespace returns the namespace of the calling thread.
func ThisNamespace() (n Namespace, err error) {
	var stat unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &stat); err != nil {
		return n, fmt.Errorf("identity of the network namespace: %w", err)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return n, fmt.Errorf("socket: %w", err)
	}
	n.Inode = stat.Ino
	n.Cookie, err = CookieOf(fd)
	return n, errors.Join(err, unix.Close(fd))
}

// CookieOf returns the cookie of the namespace of a socket.
func CookieOf(fd int) (uint64, error) {
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, kernel.Explain(fmt.Errorf("identity of the network namespace: %w", err), "devices on network interfaces")
	}
	return cookie, nil
}

// initialPIDs is the name of the initial PID namespace (PROC_PID_INIT_INO), which sees all
// processes.
const initialPIDs = "pid:[4026531836]"

// kthreadd is a process of root that always exists in the initial PID namespace.
const kthreadd = "/proc/2/ns/net"

// gone reports whether no process and no file refers to the namespace. It returns false if this process cannot see all
// processes and their namespaces.
func (n Namespace) gone() bool {
	if seen, err := os.Readlink("/proc/self/ns/pid"); err != nil || seen != initialPIDs {
		return false
	}
	if _, err := os.Readlink(kthreadd); err != nil {
		return false // other users' processes are hidden or cannot be inspected
	}
	name := fmt.Sprintf("net:[%d]", n.Inode)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), name) {
		return false
	}
	// All threads, because a thread may be in another namespace than its process.
	links, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*/ns/net")
	for _, link := range links {
		if in, err := os.Readlink(link); err == nil && in == name {
			return false
		}
	}
	return err == nil && len(links) > 0
}
