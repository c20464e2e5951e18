// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestWrongValues: an invalid value is reported with its flag and a pointer to the help.
func TestWrongValues(t *testing.T) {
	for _, row := range []struct{ argument, want string }{
		{"--count=x", `--count: "x" is not an integer; see roced --help`},
		{"-n=1.5", `--count: "1.5" is not an integer; see roced --help`},
		{"--count=99999999999999999999", `--count: 99999999999999999999 is out of range; see roced --help`},
		{"--length=-1", `--length: "-1" is not a non-negative integer; see roced --help`},
		{"--sizes=1,,2", `--sizes: "" is not a number of bytes, such as 4096, 64k or 1M; see roced --help`},
		{"--size=64x", `--size: "64x" is not a number of bytes, such as 4096, 64k or 1M; see roced --help`},
		{"--part=half", `--part: "half" is not a number; see roced --help`},
		{"--spin=maybe", `--spin: "maybe" is neither true nor false; see roced --help`},
		{"--every=5", `--every: "5" is not a duration, such as 200ms, 5s or 1m30s; see roced --help`},
		{"--other", `unknown flag: --other; see roced --help`},
	} {
		cmd := &cobra.Command{Use: "roced", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
		cmd.SetFlagErrorFunc(flagError)
		cmd.Flags().IntP("count", "n", 0, "")
		cmd.Flags().Uint32("length", 0, "")
		var size int
		var sizes []int
		AddSize(cmd.Flags(), &size, "size", "", 1, "")
		AddSizes(cmd.Flags(), &sizes, "sizes", "", nil, "")
		cmd.Flags().Float64("part", 0, "")
		cmd.Flags().Bool("spin", false, "")
		cmd.Flags().Duration("every", time.Second, "")
		cmd.SetArgs([]string{row.argument})
		err := cmd.Execute()
		if err == nil || err.Error() != row.want || !errors.As(err, new(usageError)) {
			t.Errorf("%s: %v, want %s", row.argument, err, row.want)
		}
	}
}
