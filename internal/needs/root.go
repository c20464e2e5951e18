// SPDX-License-Identifier: Apache-2.0

package needs

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Root skips the test unless it runs as root of the machine: with its capabilities, and with a writable /proc/sys. Root of
// a container often has neither.
func Root(t testing.TB) {
	t.Helper()
	if what := lacking(); what != "" {
		Skip(t, "%s", what)
	}
}

// lacking returns the missing part of root with the remedy; empty if none is missing.
var lacking = sync.OnceValue(func() string {
	if os.Geteuid() != 0 {
		return "root: run as root"
	}
	users, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || string(bytes.Join(bytes.Fields(users), []byte(" "))) != "0 0 4294967295" {
		return "root of the machine, not of a user namespace: run it outside"
	}
	if missing := missingCapabilities(); len(missing) > 0 {
		return "root with " + strings.Join(missing, ", ") + ": in a container use --privileged"
	}
	if err := unix.Access("/proc/sys/net/ipv4/conf/all/forwarding", unix.W_OK); err != nil {
		return "a writable /proc/sys (" + err.Error() + "): in a container use --privileged"
	}
	return ""
})

// capabilities are the capabilities that tests use as root.
var capabilities = map[string]int{
	"CAP_BPF": unix.CAP_BPF, "CAP_IPC_LOCK": unix.CAP_IPC_LOCK, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_NET_RAW": unix.CAP_NET_RAW,
	"CAP_PERFMON": unix.CAP_PERFMON, "CAP_SETPCAP": unix.CAP_SETPCAP, "CAP_SETUID": unix.CAP_SETUID, "CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN,
	"CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE,
}

// missingCapabilities returns the capabilities that are not in effect.
func missingCapabilities() (missing []string) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	for name, number := range capabilities {
		if err != nil || data[number/32].Effective>>(number%32)&1 == 0 {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}
