package run

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// totalMemory is what all users may have: the configuration's, or half of what there is.
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

// memoryOf is what this process may have of a machine's memory: that of the smallest limit of its control
// group and those above it, of which some may be out of sight (cgroups(7), version 2).
func memoryOf(root fs.FS, machine uint64) uint64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return machine
	}
	for line := range strings.Lines(string(text)) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for unified && group != "/" && group != "." {
			limit, err := fs.ReadFile(root, path.Join("sys/fs/cgroup", group, "memory.max"))
			if bytes, wrong := strconv.ParseUint(strings.TrimSpace(string(limit)), 10, 64); err == nil && wrong == nil {
				machine = min(machine, bytes) // else it is "max"
			}
			group = path.Dir(group)
		}
	}
	return machine
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
