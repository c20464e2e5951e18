// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// serviceSocket returns the path of the socket on which a process serves programs (roced run). It returns "" if the
// process has none, or if the caller is not allowed to inspect it.
func serviceSocket(pid int) string {
	own := socketsOf(pid)
	for _, table := range socketTables(pid) {
		for _, line := range strings.Split(table, "\n") {
			// Num RefCount Protocol Flags Type St Inode Path
			f := strings.Fields(line)
			if len(f) != 8 || f[3] != "00010000" || f[4] != "0005" || !own[f[6]] { // not a listening SOCK_SEQPACKET socket of the process
				continue
			}
			if path := servedAt(f[7], pid); path != "" {
				return path
			}
		}
	}
	return ""
}

// socketTables returns the lists of Unix sockets in the network namespaces of all threads of a process. /proc/PID/net
// contains only that of the first thread, which may be in the namespace of a card.
func socketTables(pid int) (tables []string) {
	seen := map[string]bool{}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the only possible error is an invalid pattern
	for _, thread := range threads {
		namespace, err := os.Readlink(filepath.Join(thread, "ns/net"))
		if err != nil || seen[namespace] {
			continue
		}
		if text, err := os.ReadFile(filepath.Join(thread, "net/unix")); err == nil {
			seen[namespace] = true
			tables = append(tables, string(text))
		}
	}
	return tables
}

// socketsOf returns the inodes of a process's sockets.
func socketsOf(pid int) map[string]bool {
	all := map[string]bool{}
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range names {
		if target, err := os.Readlink(name); err == nil {
			if inode, is := strings.CutPrefix(target, "socket:["); is {
				all[strings.TrimSuffix(inode, "]")] = true
			}
		}
	}
	return all
}

// servedAt returns the current path of a socket: the path to which it was bound or, since services rename their
// sockets, the path of a socket in the same folder on which the process listens.
func servedAt(bound string, pid int) string {
	if info, err := os.Lstat(bound); err == nil && info.Mode().Type() == fs.ModeSocket {
		return bound
	}
	names, _ := os.ReadDir(filepath.Dir(bound))
	for _, entry := range names {
		if path := filepath.Join(filepath.Dir(bound), entry.Name()); entry.Type() == fs.ModeSocket && peerAt(path) == pid {
			return path
		}
	}
	return ""
}

// peerAt returns the PID of the process that listens on a socket, or 0. It connects without sending data.
func peerAt(path string) int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	if unix.Connect(fd, &unix.SockaddrUnix{Name: path}) != nil {
		return 0
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0
	}
	return int(peer.Pid)
}
