// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPrintable(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"", ""},
		{"eth0", "eth0"},
		{"größe 網卡", "größe 網卡"},
		{`no test "magic"`, `no test "magic"`},
		{"\x1b[31mred\x07", `\x1b[31mred\a`},
		{"one\r\ntwo\t\x00", `one\r\ntwo\t\x00`},
		{`C:\"x"\`, `C:\\"x"\\`},
		{"\u202etxt\u2028\x9b\xff", `\u202etxt\u2028\x9b\xff`},
		{"\u009b", `\u009b`},
		{strings.Repeat("é", maxText), strings.Repeat("é", maxText)},
		{strings.Repeat("é", maxText+1), strings.Repeat("é", maxText) + "…"},
		{strings.Repeat("\n", 1<<20), strings.Repeat(`\n`, maxText) + "…"},
	} {
		if got := Printable(row.text); got != row.want {
			t.Errorf("%.40q: %s, want %s", row.text, got, row.want)
		}
	}
}

func TestImpossible(t *testing.T) {
	err := Impossible("server.mtu\x1b", -5)
	if !errors.Is(err, unix.EBADMSG) || !strings.HasPrefix(err.Error(), `the peer sent an invalid value, server.mtu\x1b -5`) {
		t.Error(err)
	}
}
