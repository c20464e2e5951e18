// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ctest

import (
	"path/filepath"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// TestABIDiff: abidiff(1) finds nothing that the installed libraries have and these lack or have otherwise.
func TestABIDiff(t *testing.T) {
	t.Parallel()
	needs.Tools(t, "abidiff", "/lib/*/libibverbs.so.1", "/lib/*/librdmacm.so.1")
	dir := build(t)
	for _, library := range []string{"libibverbs.so.1", "librdmacm.so.1"} {
		installed, err := filepath.Glob("/usr/lib/*/" + library)
		if err != nil || len(installed) == 0 {
			t.Fatal(library, err)
		}
		if out, err := needs.Command(t, "abidiff", "--no-added-syms", installed[0], filepath.Join(dir, library)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", library, err, out)
		}
	}
}
