package run

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMemoryOf: the least of the machine's memory and the limits of the control groups that are seen.
func TestMemoryOf(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const service = "0::/system.slice/roced.service\n"
	for _, row := range []struct {
		name string
		root fstest.MapFS
		want uint64
	}{
		{"no control groups", fstest.MapFS{}, 1000},
		{"of version 1", fstest.MapFS{"proc/self/cgroup": file("4:memory:/a\n"), "sys/fs/cgroup/a/memory.max": file("5\n")}, 1000},
		{"none has a limit", fstest.MapFS{
			"proc/self/cgroup": file(service), "sys/fs/cgroup/system.slice/roced.service/memory.max": file("max\n"),
		}, 1000},
		{"its own", fstest.MapFS{
			"proc/self/cgroup": file(service), "sys/fs/cgroup/system.slice/roced.service/memory.max": file("300\n"),
			"sys/fs/cgroup/system.slice/memory.max": file("400\n"),
		}, 300},
		{"one above", fstest.MapFS{
			"proc/self/cgroup": file("1:name=systemd:/x\n" + service), "sys/fs/cgroup/system.slice/memory.max": file("200\n"),
		}, 200},
		{"more than there is", fstest.MapFS{"proc/self/cgroup": file("0::/a\n"), "sys/fs/cgroup/a/memory.max": file("5000\n")}, 1000},
		{"a process of another hierarchy", fstest.MapFS{"proc/self/cgroup": file("0::/../other\n")}, 1000},
	} {
		if got := memoryOf(row.root, 1000); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestTotalMemory: the configuration's goes before the machine's.
func TestTotalMemory(t *testing.T) {
	if n := totalMemory(7); n != 7 {
		t.Error(n)
	}
	if n := totalMemory(0); n < 1<<20 {
		t.Errorf("half of what there is: %d", n)
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
