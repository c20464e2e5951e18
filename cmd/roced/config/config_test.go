// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
)

func write(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "roced.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheck(t *testing.T) {
	file := write(t, "[[device]]\ninterface = \"eth0\"\n")
	code, stdout, stderr := cmdtest.Run(t, "config", "check", file)
	if code != 0 || stdout != file+" is valid: 1 device\n" || stderr != "" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

func TestCheckFindsAll(t *testing.T) {
	file := write(t, "[[device]]\ninterfaces = \"eth0\"\nspin = 20\n")
	code, stdout, stderr := cmdtest.Run(t, "config", "check", file)
	want := []string{
		file + ":1:1: device: missing interface",
		file + ":2:1: device.interfaces: unknown key; did you mean device.interface?",
		file + ":3:1: device.spin: invalid number 20; use a duration",
		"roced: 3 errors in " + file,
	}
	lines := strings.Split(stderr, "\n")
	if code != cli.ExitFailed || stdout != "" || len(lines) != len(want)+1 {
		t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
	}
	for i, text := range want {
		if !strings.HasPrefix(lines[i], text) {
			t.Errorf("%q does not begin with %q", lines[i], text)
		}
	}
}

func TestExampleIsRight(t *testing.T) {
	code, stdout, _ := cmdtest.Run(t, "config", "example")
	if code != 0 || !strings.Contains(stdout, "[[device]]") {
		t.Fatalf("exit code %d, %q", code, stdout)
	}
	if code, _, stderr := cmdtest.Run(t, "config", "check", write(t, stdout)); code != 0 {
		t.Error(stderr)
	}
}

func TestWrongCommandLines(t *testing.T) {
	cmdtest.CheckFailure(t, []string{"config", "nonsense"}, cli.ExitUsage, `unknown command "nonsense" of roced config`)
	cmdtest.CheckFailure(t, []string{"config", "check", "a", "b"}, cli.ExitUsage, "one FILE")
	cmdtest.CheckFailure(t, []string{"config", "check", "/nonexistent"}, cli.ExitFailed, "no such file")
}
