// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// licence is the licence of all files but those of bpf, whose programs call functions that the kernel provides to
// programs under the GPL alone.
const licence = "SPDX-License-Identifier: Apache-2.0"

// TestLicences: each source file names its licence in its first lines. The generator of the eBPF objects' Go code
// writes none.
func TestLicences(t *testing.T) {
	sources, generated, checked := regexp.MustCompile(`\.(go|c|h)$`), regexp.MustCompile(`_bpfe[bl]\.go$`), 0
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "dist" || entry.Name() == "clib"):
			return filepath.SkipDir
		case entry.IsDir() || !sources.MatchString(name) || generated.MatchString(name):
			return nil
		}
		checked++
		want := licence
		if strings.HasPrefix(name, "../../bpf/") && !strings.HasSuffix(name, ".go") {
			want = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
		}
		if !namesLicence(t, name, want) {
			t.Errorf("%s: the first lines do not contain %q", name, want)
		}
		return nil
	})
	if err != nil || checked < 1000 {
		t.Errorf("checked %d files: %v", checked, err)
	}
}

// namesLicence reports whether one of a file's first three lines contains the licence.
func namesLicence(t *testing.T, name, licence string) bool {
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for range 3 {
		if lines.Scan() && strings.Contains(lines.Text(), licence) {
			return true
		}
	}
	return false
}
