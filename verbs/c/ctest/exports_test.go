//go:build linux

package ctest

import (
	"debug/elf"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// newerExports are those that later libraries than Debian 12's have.
var newerExports = []string{
	"ibv_query_port_speed@@IBVERBS_1.16", "ibv_alloc_buf@@IBVERBS_1.17", "ibv_free_buf@@IBVERBS_1.17", "ibv_reg_buf_mr@@IBVERBS_1.17",
	"ibv_query_comp_cntr_caps@@IBVERBS_1.18",
}

// TestExports: the library exports what Debian's does, by the same versions, with the same defaults.
func TestExports(t *testing.T) {
	t.Parallel()
	installed, err := filepath.Glob("/usr/lib/*/libibverbs.so.1")
	if err != nil || len(installed) == 0 {
		t.Skip("libibverbs1 is not installed")
	}
	want, have := exports(t, installed[0]), exports(t, filepath.Join(build(t), "libibverbs.so.1"))
	for _, name := range append(want, newerExports...) {
		if !slices.Contains(have, name) {
			t.Errorf("%s is not exported", name)
		}
	}
	for _, name := range have {
		if !slices.Contains(want, name) && !slices.Contains(newerExports, name) && !strings.HasSuffix(name, "@@ROCED_PRIVATE") {
			t.Errorf("%s is exported, and libibverbs has none", name)
		}
	}
}

var nodeName = regexp.MustCompile(`^(IBVERBS|RDMACM|ROCED)_[A-Z0-9_.]+$`)

// exports are the defined names of a library with their versions; @@ is the default one.
func exports(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || nodeName.MatchString(s.Name) {
			continue
		}
		at := "@@"
		if s.VersionIndex.IsHidden() {
			at = "@"
		}
		names = append(names, s.Name+at+s.Version)
	}
	return names
}
