// SPDX-License-Identifier: Apache-2.0

package verbstest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/roced/roced/verbs/verbstest"
)

// emptied is the environment variable with the name of the field that TestRunOf leaves empty.
const emptied = "VERBSTEST_EMPTIED"

// fields contains the required fields, with functions that clear them.
var fields = map[string]func(p *verbstest.Pair){
	"A.Provider":  func(p *verbstest.Pair) { p.A.Provider = nil },
	"A.IPv4":      func(p *verbstest.Pair) { p.A.IPv4 = zero.IPv4 },
	"B.IPv6":      func(p *verbstest.Pair) { p.B.IPv6 = zero.IPv6 },
	"B.LinkLocal": func(p *verbstest.Pair) { p.B.LinkLocal = zero.LinkLocal },
	"B.MAC":       func(p *verbstest.Pair) { p.B.MAC = zero.MAC },
	"Unreachable": func(p *verbstest.Pair) { p.Unreachable = zero.IPv4 },
}

var zero verbstest.End

// TestRunOf runs all tests with the example's pair, or in a child process with a pair without one field.
func TestRunOf(t *testing.T) {
	verbstest.Run(t, func(t *testing.T) verbstest.Pair {
		pair := newPair(t)
		if take := fields[os.Getenv(emptied)]; take != nil {
			take(&pair)
		}
		return pair
	})
}

// TestRunNamesEmptyFields checks that Run fails once for an incomplete pair, and reports the missing field.
func TestRunNamesEmptyFields(t *testing.T) {
	for field := range fields {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			command := exec.Command(os.Args[0], "-test.run=^TestRunOf$", "-test.v")
			command.Env = append(os.Environ(), emptied+"="+field)
			output, err := command.CombinedOutput()
			if err == nil || strings.Count(string(output), "Pair."+field+" is empty") != 1 || strings.Count(string(output), "=== RUN") != 3 {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}
