// SPDX-License-Identifier: Apache-2.0

package card

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestModeFlags: conflicting flags are rejected before anything is opened.
func TestModeFlags(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args string
		want string // of the error; empty for none
		xdp  bool   // NeedsXDP
	}{
		{"", "", false},
		{"--network auto --xdp auto --tx auto", "", false},
		{"--network udp", "", false},
		{"--network udp --xdp auto", "", false},
		{"--network xdp", "", true},
		{"--network xdp --copy", "", true},
		{"--xdp generic", "", true},
		{"--tx trains", "", true},
		{"--network udp --xdp native", "--network udp and --xdp native cannot be combined", true},
		{"--network udp --tx af_xdp", "--network udp and --tx af_xdp cannot be combined", true},
		{"--network udp --copy", "--network udp and --copy cannot be combined", true},
		{"--network udp --zerocopy", "--network udp and --zerocopy cannot be combined", true},
		{"--copy --zerocopy", "--copy and --zerocopy cannot be combined", true},
	} {
		var m ModeFlags
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		m.Add(set)
		if err := set.Parse(strings.Fields(row.args)); err != nil {
			t.Fatal(err)
		}
		err := m.Check()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want %q", row.args, err, row.want)
		}
		if m.NeedsXDP() != row.xdp {
			t.Errorf("%q: needs XDP: %v", row.args, m.NeedsXDP())
		}
	}
}
