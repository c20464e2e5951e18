//go:build linux

package ctest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestABIDiff: abidiff(1) finds nothing that the installed libraries have and these lack or have otherwise.
func TestABIDiff(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("abidiff"); err != nil {
		t.Skip("abigail-tools are not installed")
	}
	dir := build(t)
	for _, library := range []string{"libibverbs.so.1", "librdmacm.so.1"} {
		installed, err := filepath.Glob("/usr/lib/*/" + library)
		if err != nil || len(installed) == 0 {
			t.Skipf("%s is not installed", library)
		}
		if out, err := exec.Command("abidiff", "--no-added-syms", installed[0], filepath.Join(dir, library)).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", library, err, out)
		}
	}
}
