// SPDX-License-Identifier: Apache-2.0

package cmdtest

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs/proto"
)

// childVariable makes the test binary run as roced.
const childVariable = "ROCED_TEST_CHILD"

// subject holds the subcommands under test.
var subject cli.Commands

// Main implements TestMain for packages whose tests run these subcommands, in the test's process or as a child. On a
// slow machine it raises the timeouts of the commands.
func Main(m *testing.M, commands cli.Commands) {
	subject = commands
	for _, limit := range []*time.Duration{&proto.ServiceTimeout, &meet.ReplyTimeout, &card.StallTimeout, &card.AckTimeout} {
		*limit = waittest.Long(*limit)
	}
	if os.Getenv(childVariable) != "" {
		cli.Main(subject)
	}
	labtest.Main(m)
}

func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, subject, args, stdout, stderr)
}

// Run runs a command line in this process.
func Run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = runCommand(t.Context(), args, &out, &errOut)
	return code, out.String(), errOut.String()
}

// CheckFailure checks the exit code and that standard error is one line that contains all of want.
func CheckFailure(t *testing.T, args []string, wantCode int, want ...string) {
	t.Helper()
	code, _, stderr := Run(t, args...)
	if code != wantCode {
		t.Errorf("%q: exit code %d, want %d: %s", args, code, wantCode, stderr)
	}
	if !strings.HasPrefix(stderr, "roced: ") || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "Usage:") {
		t.Errorf("%q: want one line starting with roced: %q", args, stderr)
	}
	for _, text := range want {
		if !strings.Contains(stderr, text) {
			t.Errorf("%q: %q does not contain %q", args, stderr, text)
		}
	}
}
