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

// totalMemory is the limit of all users together: the configured one, or half of the memory that the service can use.
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

// groupLimit returns the smallest limit of a control group and of the groups above it. The mount is one of them: in a
// container it is the container's own group. The root of the machine has no file in version 2.
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

// ownDescriptors are those that the service keeps for itself: of devices, groups and metrics.
const ownDescriptors = 1024

// descriptors is how many users may have together.
func descriptors() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return max(limit.Cur-min(ownDescriptors, limit.Cur/4), 1)
}

// maxThreads is the number of threads beyond which the runtime ends the process; TasksMax= of the units is the same. A thread
// is a goroutine that executes, or that is in a system call. With the 65,536 descriptors of the units there are
// (65,536 - ownDescriptors) / 5 = 12,902 connections at most, each with one goroutine that carries out commands. Blocking
// calls of clients have 256 threads (verbs/server), and the rest, some 3,000, is for devices, metrics and the runtime.
const maxThreads = 16384

// mappings is how many users may have together for regions of their own memory: half of what the kernel lets a process
// have (vm.max_map_count). The rest is the service's own.
func mappings() uint64 {
	raw, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		return defaultMappings
	}
	most, err := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return defaultMappings
	}
	return max(most/2, 1)
}

// defaultMappings is half of the kernel's own default.
const defaultMappings = 65530 / 2
