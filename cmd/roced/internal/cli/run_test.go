// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// TestRemedy: the error for too few descriptors has one remedy.
func TestRemedy(t *testing.T) {
	for text, want := range map[string]int{"listen": 1, "raise ulimit -n": 1, "": 0} {
		var stderr bytes.Buffer
		failing := &cobra.Command{Use: "fail", RunE: func(*cobra.Command, []string) error {
			if text == "" {
				return unix.ENOENT
			}
			return fmt.Errorf("%s: %w", text, unix.EMFILE)
		}}
		Run(t.Context(), func(*slog.Logger) []*cobra.Command { return []*cobra.Command{failing} }, []string{"fail"}, &bytes.Buffer{}, &stderr)
		if got := strings.Count(stderr.String(), "ulimit"); got != want {
			t.Errorf("%q", stderr.String())
		}
	}
}
