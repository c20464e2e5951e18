// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAdvise: the advice is systemctl only if systemd is running and has the unit.
func TestAdvise(t *testing.T) {
	for _, row := range []struct {
		paths []string
		want  string
	}{
		{nil, "plain"},
		{[]string{"run/systemd/system/."}, "plain"},
		{[]string{"lib/systemd/system/roced.service"}, "plain"},
		{[]string{"run/systemd/system/.", "lib/systemd/system/other.service"}, "plain"},
		{[]string{"run/systemd/system/.", "lib/systemd/system/roced.service"}, "managed"},
		{[]string{"run/systemd/system/.", "etc/systemd/system/roced.service"}, "managed"},
	} {
		root := t.TempDir()
		for _, path := range row.paths {
			folder := filepath.Join(root, filepath.Dir(path))
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if name := filepath.Base(path); name != "." {
				if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := advise(root, "managed", "plain"); got != row.want {
			t.Errorf("with %q: %q, want %q", row.paths, got, row.want)
		}
	}
}
