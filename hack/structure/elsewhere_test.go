// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatNeedsLinuxSaysSo: in packages that need Linux, only other.go is for other systems, so that programs on the
// in-memory network compile there (make cross).
func TestWhatNeedsLinuxSaysSo(t *testing.T) {
	for _, folder := range []string{"verbs/hca", "verbs/hca/memnet", "verbs/client"} {
		names, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		for _, name := range names {
			want := "//go:build linux"
			switch base := path.Base(name); {
			case base == "doc.go" || strings.HasSuffix(base, "_test.go"):
				continue
			case base == "other.go":
				want = "//go:build !linux"
			}
			if text, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(text), "// "+licence+"\n\n"+want+"\n") {
				t.Errorf("%s/%s has to have %s below its licence: %v", folder, path.Base(name), want, err)
			}
		}
	}
}
