// SPDX-License-Identifier: Apache-2.0

package daemon

import "testing"

// TestPrintable: control characters in a program's name are escaped.
func TestPrintable(t *testing.T) {
	if got := Printable("a\x1b[2Jb\tc\n"); got != "a?[2Jb\tc?" {
		t.Errorf("%q", got)
	}
}
