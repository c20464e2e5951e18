// SPDX-License-Identifier: Apache-2.0

package structure

import (
	"regexp"
	"strings"
	"testing"
)

// licence is the licence of all files except those of bpf, whose programs call functions that the kernel provides to
// programs under the GPL alone.
const licence = "SPDX-License-Identifier: Apache-2.0"

// TestLicences checks that each source file names its licence in its first three lines. The generator of the eBPF
// objects' Go code writes none.
func TestLicences(t *testing.T) {
	source, generated, checked := regexp.MustCompile(`\.(go|c|h)$`), regexp.MustCompile(`_bpfe[bl]\.go$`), 0
	eachFile(t, func(name, text string) {
		if !source.MatchString(name) || generated.MatchString(name) {
			return
		}
		checked++
		want := licence
		if strings.HasPrefix(name, "bpf/") && !strings.HasSuffix(name, ".go") {
			want = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
		}
		if lines := strings.SplitN(text, "\n", 4); !strings.Contains(strings.Join(lines[:min(3, len(lines))], "\n"), want) {
			t.Errorf("%s: the first lines do not contain %q", name, want)
		}
	})
	if checked < 1000 {
		t.Errorf("checked %d files", checked)
	}
}
