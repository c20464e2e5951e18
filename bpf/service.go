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

// serviceSocket is the socket at which a process takes programs (roced run); empty if it has none, or may not be
// looked at.
func serviceSocket(pid int) string {
	own := socketsOf(pid)
	for _, table := range socketTables(pid) {
		for _, line := range strings.Split(table, "\n") {
			// Num RefCount Protocol Flags Type St Inode Path
			f := strings.Fields(line)
			if len(f) != 8 || f[3] != "00010000" || f[4] != "0005" || !own[f[6]] { // it listens, by SOCK_SEQPACKET
				continue
			}
			if path := servedAt(f[7], pid); path != "" {
				return path
			}
		}
	}
	return ""
}

// socketTables are the lists of Unix sockets of the network namespaces that the threads of a process are in.
// /proc/PID/net has the first thread's only, and that thread may have been left in the namespace of a card.
func socketTables(pid int) (tables []string) {
	seen := map[string]bool{}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the only error is a bad pattern
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

// socketsOf are the inodes of a process's sockets.
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

// servedAt is the name that a socket has now: the one it was bound to, or, since services rename theirs, that of
// another socket there at which the process answers.
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

// peerAt returns the process that listens at a socket; 0 if none. It connects without sending data.
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
