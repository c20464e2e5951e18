// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPortRules: the host's settings are used; missing and invalid ones are replaced by defaults.
func TestPortRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want PortRules) {
		t.Helper()
		if got := readPortRules(dir); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	expect(DefaultPortRules())
	write("ipv4/ip_local_port_range", "40000\t40009\n")
	write("ipv4/ip_unprivileged_port_start", "80\n")
	write("ipv6/bindv6only", "1\n")
	expect(PortRules{40000, 40009, 80, true})
	write("ipv4/ip_local_port_range", "9 1\n")
	write("ipv4/ip_unprivileged_port_start", "\n")
	write("ipv6/bindv6only", "0\n")
	expect(DefaultPortRules())
}

// TestMaxNeighbours: the limit of the kernel's table is read for each family. If it cannot be read, the result is the
// default.
func TestMaxNeighbours(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "ipv6/neigh/default/gc_thresh3")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint64{"4096\n": 4096, "0\n": 1024, "none": 1024} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if v4, v6 := maxNeighbours(dir, false), maxNeighbours(dir, true); v4 != 1024 || v6 != want {
			t.Errorf("%q: %d and %d", text, v4, v6)
		}
	}
}
