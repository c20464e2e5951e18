// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"bufio"
	"debug/elf"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExports: the libraries export what those of three of Debian's releases do (testdata), by the same versions, with
// the same defaults, and nothing else.
func TestExports(t *testing.T) {
	t.Parallel()
	dir := build(t)
	for _, library := range []string{"libibverbs", "librdmacm"} {
		t.Run(library, func(t *testing.T) {
			want, have := exported(t, library), exports(t, filepath.Join(dir, library+".so.1"))
			for name, releases := range want {
				if !slices.Contains(have, name) {
					t.Errorf("%s of %s is not exported", name, releases)
				}
			}
			for _, name := range have {
				if _, known := want[name]; !known && !strings.HasSuffix(name, "@@ROCED_PRIVATE") {
					t.Errorf("%s is exported, and %s has none", name, library)
				}
			}
		})
	}
}

// exported reads what Debian's libraries export: names, and the releases that have them.
func exported(t *testing.T, library string) map[string]string {
	t.Helper()
	file, err := os.Open("testdata/" + library + ".exports")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	names := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, releases, ok := strings.Cut(lines.Text(), " "); ok && name != "#" {
			names[name] = releases
		}
	}
	for name, releases := range names { // a library has one default: of two for providers, the older's
		of, version, _ := strings.Cut(name, "@@")
		if _, both := names[of+"@@IBVERBS_PRIVATE_34"]; both && version == "IBVERBS_PRIVATE_65" {
			delete(names, name)
			names[of+"@"+version] = releases
		}
	}
	return names
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
		if s.Section == elf.SHN_UNDEF || elf.ST_BIND(s.Info) == elf.STB_LOCAL || nodeName.MatchString(s.Name) {
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
