package daemon

import "testing"

// TestPrintable: a program's name moves no cursor.
func TestPrintable(t *testing.T) {
	if got := Printable("a\x1b[2Jb\tc\n"); got != "a?[2Jb\tc?" {
		t.Errorf("%q", got)
	}
}
