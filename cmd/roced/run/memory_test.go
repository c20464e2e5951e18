// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMemoryOf: the smallest of the machine's memory and the limits of the visible control groups, in each layout.
func TestMemoryOf(t *testing.T) {
	const (
		service = "0::/system.slice/roced.service\n"
		v2      = "sys/fs/cgroup/"
		v1      = "sys/fs/cgroup/memory/"
		none1   = "9223372036854771712\n" // no limit, in version 1
	)
	for _, row := range []struct {
		name, groups string
		files        map[string]string
		want         uint64
	}{
		{"no control groups", "", nil, 1000},
		{"no limit", service, map[string]string{v2 + "system.slice/roced.service/memory.max": "max\n"}, 1000},
		{"its own limit", service, map[string]string{v2 + "system.slice/roced.service/memory.max": "300\n", v2 + "system.slice/memory.max": "400\n"}, 300},
		{"a limit above", "1:name=systemd:/x\n" + service, map[string]string{v2 + "system.slice/memory.max": "200\n"}, 200},
		{"more than the machine has", "0::/a\n", map[string]string{v2 + "a/memory.max": "5000\n"}, 1000},
		{"a container with a cgroup namespace", "0::/\n", map[string]string{v2 + "memory.max": "250\n"}, 250},
		{"a group in such a container", "0::/a/b\n", map[string]string{v2 + "a/b/memory.max": "max\n", v2 + "a/memory.max": "260\n", v2 + "memory.max": "250\n"}, 250},
		{"a container without one", "0::/docker/1\n", map[string]string{v2 + "memory.max": "240\n"}, 240},
		{"outside of the cgroup namespace", "0::/../other\n", map[string]string{v2 + "other/memory.max": "5\n", v2 + "memory.max": "5\n", "sys/fs/other/memory.max": "5\n"}, 1000},
		{"version 1", "4:cpu,cpuacct:/a\n3:memory:/a/b\n", map[string]string{v1 + "a/b/memory.limit_in_bytes": "300\n", v1 + "a/memory.limit_in_bytes": none1, v1 + "memory.limit_in_bytes": none1}, 300},
		{"a limit above, version 1", "3:memory:/a/b\n", map[string]string{v1 + "a/b/memory.limit_in_bytes": none1, v1 + "a/memory.limit_in_bytes": "200\n"}, 200},
		{"no limit, version 1", "3:memory:/a\n", map[string]string{v1 + "a/memory.limit_in_bytes": none1}, 1000},
		{"a container, version 1", "3:memory:/\n", map[string]string{v1 + "memory.limit_in_bytes": "250\n"}, 250},
		{"a container that sees the host's name, version 1", "3:memory:/docker/1\n", map[string]string{v1 + "memory.limit_in_bytes": "250\n"}, 250},
		{"both versions, memory in version 1", "0::/a\n3:memory:/a\n", map[string]string{v1 + "a/memory.limit_in_bytes": "250\n"}, 250},
		{"memory joined with another controller", "3:cpu,memory:/a\n", map[string]string{v1 + "a/memory.limit_in_bytes": "250\n"}, 250},
		{"files of the other version", "3:memory:/a\n", map[string]string{v2 + "a/memory.max": "5\n"}, 1000},
		{"invalid lines", "x\n\n:\n", nil, 1000},
	} {
		root := fstest.MapFS{}
		if row.groups != "" {
			root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(row.groups)}
		}
		for name, text := range row.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := memoryOf(root, 1000); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestTotalMemory: the configured limit has priority over the machine's memory.
func TestTotalMemory(t *testing.T) {
	if n := totalMemory(7); n != 7 {
		t.Error(n)
	}
	if n := totalMemory(0); n < 1<<20 {
		t.Errorf("half of the available memory: %d", n)
	}
}

// TestThreadsOfUnits: the units allow as many threads as the runtime does.
func TestThreadsOfUnits(t *testing.T) {
	for _, unit := range []string{"roced.service", "roced@.service"} {
		text, err := os.ReadFile("../../../hack/package/root/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("\nTasksMax=%d\n", maxThreads); !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q", unit, want)
		}
	}
}
