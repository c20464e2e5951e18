// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissing: one error names all missing tools, with their packages once each.
func TestMissing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := os.WriteFile(filepath.Join(dir, "git"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Missing("git"); err != nil {
		t.Error(err)
	}
	err := Missing("gcc", "git", "cc", "aarch64-linux-musl-gcc", "clang")
	const want = "missing aarch64-linux-musl-gcc, cc, clang, gcc (Debian: dpkg --add-architecture arm64 && apt-get update && apt-get install --no-install-recommends clang gcc musl-dev:arm64)"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want\n%s", err, want)
	}
}

// TestMissingFiles: a name with a slash is the pattern of a file.
func TestMissingFiles(t *testing.T) {
	const header = "/usr/include/infiniband/verbs.h"
	_, err := os.Stat(header)
	if missing := Missing(header); (missing == nil) != (err == nil) || missing != nil && !strings.HasSuffix(missing.Error(), " libibverbs-dev)") {
		t.Errorf("got %v, want %v", missing, err)
	}
}

// TestPurposes: the table has each tool of each purpose.
func TestPurposes(t *testing.T) {
	for _, p := range Purposes {
		for _, name := range p.Needs {
			if _, known := Package(name); !known {
				t.Errorf("%s: the package of %s is unknown", p.Name, name)
			}
		}
	}
}
