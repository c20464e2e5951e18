// SPDX-License-Identifier: Apache-2.0

package run

import (
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// totalMemory returns the limit of all users together: the configured one, or half of the available memory.
func totalMemory(configured uint64) uint64 {
	if configured > 0 {
		return configured
	}
	var machine unix.Sysinfo_t
	if unix.Sysinfo(&machine) != nil {
		return 0
	}
	return memoryOf(os.DirFS("/"), uint64(machine.Totalram)*uint64(machine.Unit)) / 2
}

// memoryOf returns the memory that this process can use on a machine: the smallest limit of its control groups and of
// the groups above them (cgroups(7)). Groups outside of a container are not visible in it.
func memoryOf(root fs.FS, machine uint64) uint64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return machine
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy, controllers, group
		if len(fields) < 3 {
			continue
		}
		switch group := fields[2]; {
		case fields[0] == "0" && fields[1] == "":
			machine = min(machine, groupLimit(root, "sys/fs/cgroup", group, "memory.max"))
		case slices.Contains(strings.Split(fields[1], ","), "memory"): // version 1
			machine = min(machine, groupLimit(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"))
		}
	}
	return machine
}

// groupLimit returns the smallest limit of a control group and of the groups above it. This includes the group at the
// mount point, in a container the container's own group. In version 2 the root group of the machine has no such file.
func groupLimit(root fs.FS, mount, group, file string) uint64 {
	least := uint64(math.MaxUint64)
	if group == "/.." || strings.HasPrefix(group, "/../") {
		return least // outside of the process's cgroup namespace: the mounted groups are not above it
	}
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		text, err := fs.ReadFile(root, path.Join(mount, group, file))
		if limit, wrong := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && wrong == nil { // "max" is no limit
			least = min(least, limit)
		}
		if group == "/" {
			return least
		}
	}
}

// reservedDescriptors is the number of descriptors reserved for the service: devices, groups and metrics.
const reservedDescriptors = 1024

// descriptors returns the number of descriptors available to all users together.
func descriptors() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return max(limit.Cur-min(reservedDescriptors, limit.Cur/4), 1)
}

// maxThreads is the limit of threads beyond which the runtime ends the process; TasksMax= of the units is the
// same. A thread is needed for each running goroutine and each goroutine in a system call. The units allow
// 65,536 descriptors, so at most (65,536 - reservedDescriptors) / 5 = 12,902 connections, each with one
// goroutine for commands. Blocking calls of clients use up to 256 threads (verbs/server). The remaining 3,000
// are for devices, metrics and the runtime.
const maxThreads = 16384

// mappings returns the number of mappings available to all users for regions of their own memory: half of the
// kernel's limit per process (vm.max_map_count). The service itself uses the rest.
func mappings() uint64 {
	raw, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return defaultMappings
	}
	limit, err := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return defaultMappings
	}
	return max(limit/2, 1)
}

// defaultMappings is half of the kernel's default.
const defaultMappings = 65530 / 2
