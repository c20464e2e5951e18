// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"
	"os"
	"strings"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/capability"
	"golang.org/x/sys/unix"
)

// need is a capability that Open needs.
type need struct {
	capability.Capability
	// optional: newer kernels work without it, but slower and with fewer counters.
	optional bool
}

// needs lists the capabilities that Open needs with this configuration. CAP_IPC_LOCK is checked separately, since a
// sufficient memlock limit replaces it.
func (c *Config) needs() []need {
	list := []need{
		{Capability: capability.NetRaw},
		{Capability: capability.BPF},
		{Capability: capability.NetAdmin},
		{Capability: capability.PerfMon, optional: true},
	}
	if c.needsSysAdmin() {
		list = append(list, need{Capability: capability.SysAdmin})
	}
	return list
}

// needsSysAdmin reports whether setns(2), or a sysfs of the namespace, is needed.
func (c *Config) needsSysAdmin() bool {
	return c.Namespace != "" || c.Tuning.DeferHardIRQs != 0 || c.Tuning.GROFlushTimeout != 0
}

// checkEntry is checkPermission for a namespace that cannot be entered. The interface is not known then, so it assumes
// one queue.
func (b *builder) checkEntry() error {
	if b.config.Namespace == "" || capability.SysAdmin.Held() {
		return nil
	}
	return b.config.checkPermission(0)
}

// checkPermission names all missing permissions in one error, before anything is opened.
func (b *builder) checkPermission() error { return b.config.checkPermission(b.lockedBytes()) }

// checkPermission compares the calling thread's capabilities and memlock limit with what Open needs;
// lock is in bytes.
func (c *Config) checkPermission(lock uint64) error {
	needed := c.needs()
	var missing []string
	refused := false
	for _, n := range needed {
		if n.Held() {
			continue
		}
		missing = append(missing, n.String())
		refused = refused || !n.optional
	}
	limit, enough := memoryLimit(lock)
	if !refused && enough {
		return nil
	}
	cause := bpf.ErrPermission
	if !refused {
		cause, missing = xsk.ErrLockedMemory, nil
	}
	if !enough {
		missing = append(missing, fmt.Sprintf("CAP_IPC_LOCK or %d KiB of locked memory (the limit is %d KiB)", lock>>10, limit>>10))
	}
	return fmt.Errorf("%w: missing %s; %s", cause, strings.Join(missing, ", "), grantHint(needed, lock))
}

// grantHint describes how to grant all capabilities to a program file and to a service.
func grantHint(needed []need, lock uint64) string {
	var names []string
	for _, n := range needed {
		names = append(names, n.String())
	}
	names = append(names, capability.IPCLock.String())
	program, err := os.Executable()
	if err != nil {
		program = "PROGRAM"
	}
	return fmt.Sprintf("setcap %s+ep %s; or in a systemd unit AmbientCapabilities=%s (instead of CAP_IPC_LOCK: LimitMEMLOCK=%d)",
		strings.ToLower(strings.Join(names, ",")), program, strings.Join(names, " "), lock)
}

// memoryLimit returns the process's limit of locked memory, and whether it is at least bytes. The memory that its user
// has already locked is unknown.
func memoryLimit(bytes uint64) (limit uint64, enough bool) {
	var l unix.Rlimit
	if capability.IPCLock.Held() || unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) != nil {
		return 0, true
	}
	return l.Cur, l.Cur >= bytes
}
