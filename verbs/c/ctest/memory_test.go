// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/internal/needs"
	"github.com/roced/roced/internal/waittest"
)

// memoryGuards are the ways in which other threads are kept from a page that moves.
var memoryGuards = []string{"userfaultfd", "user", "signal"}

// memoryPrograms is the folder of the test programs of the caller's memory, with its sources and without the service.
type memoryPrograms string

func buildMemory(t *testing.T, k kind) memoryPrograms {
	t.Helper()
	needs.Tools(t, compiler...)
	dir := t.TempDir()
	for _, name := range []string{"tests/memory", "tests/memoryrandom"} {
		if err := k.keep(dir, name, name); err != nil {
			t.Fatal(err)
		}
	}
	return memoryPrograms(dir)
}

// run runs a program and gives its exit code and output.
func (m memoryPrograms) run(t *testing.T, environment []string, name string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(string(m), name), args...)
	cmd.Env = append(os.Environ(), environment...)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

func (m memoryPrograms) succeeds(t *testing.T, environment []string, name string, args ...string) {
	t.Helper()
	if code, text := m.run(t, environment, name, args...); code != 0 {
		t.Fatalf("exit code %d: %s", code, text)
	}
}

// TestMemory tests the caller's memory. ROCED_MEMORY is the number of random registrations.
func TestMemory(t *testing.T) {
	m := buildMemory(t, glibc())
	t.Run("case", m.testCases)
	t.Run("many", m.testMany)
	t.Run("random", m.testRandom)
	t.Run("unguarded", m.testUnguarded)
}

// testCases runs each case with one thread, by the text of /proc/self/maps, and with two threads and each guard.
func (m memoryPrograms) testCases(t *testing.T) {
	variants := [][]string{nil, {"MEMORY_TEXT=1"}}
	for _, guard := range memoryGuards {
		variants = append(variants, []string{"MEMORY_THREAD=1", "ROCED_MEMORY_GUARD=" + guard})
	}
	_, names := m.run(t, nil, "memory")
	for name := range strings.FieldsSeq(names) {
		if name == "costs" || name == "many" || name == "forkfails" && os.Getuid() != 0 {
			continue // measures; has its own test; takes the user's right to have processes
		}
		for _, variant := range variants {
			t.Run(name+"/"+strings.Join(variant, ","), func(t *testing.T) {
				t.Parallel()
				m.succeeds(t, variant, "memory", name)
			})
		}
	}
}

// testMany registers scattered pages until vm.max_map_count ends it.
func (m memoryPrograms) testMany(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if most, _ := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || most > 70000 {
		needs.Skip(t, "vm.max_map_count of at most 70000, it is %s: sysctl -w vm.max_map_count=65530", text)
	}
	m.succeeds(t, nil, "memory", "many")
}

func (m memoryPrograms) testRandom(t *testing.T) {
	counts := map[string]int{"userfaultfd": 10000, "user": 3000, "signal": 3000}
	for _, guard := range memoryGuards {
		count := strconv.Itoa(waittest.Often(counts[guard]))
		if wanted := os.Getenv("ROCED_MEMORY"); wanted != "" {
			count = wanted
		}
		t.Run(guard, func(t *testing.T) {
			t.Parallel()
			seed := strconv.FormatInt(time.Now().UnixNano(), 10)
			t.Logf("memoryrandom %s %s", seed, count)
			m.succeeds(t, []string{"ROCED_MEMORY_GUARD=" + guard}, "memoryrandom", seed, count)
		})
	}
}

// testUnguarded shows that testRandom can fail: without a guard increments are lost.
func (m memoryPrograms) testUnguarded(t *testing.T) {
	t.Parallel()
	for range 20 {
		seed := strconv.FormatInt(time.Now().UnixNano(), 10)
		code, text := m.run(t, []string{"ROCED_MEMORY_GUARD=none"}, "memoryrandom", seed, "2000")
		if code == 3 {
			return
		}
		if code != 0 {
			t.Fatalf("seed %s: exit code %d: %s", seed, code, text)
		}
	}
	t.Fatal("no increment was lost without a guard")
}
