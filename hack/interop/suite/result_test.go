// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"slices"
	"testing"
)

func TestIncomplete(t *testing.T) {
	const (
		passed   = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n"
		skipped  = "=== RUN   TestB\n=== RUN   TestB/of_it\n    b_test.go:7: %s\n    --- SKIP: TestB/of_it (0.00s)\n--- PASS: TestB (0.01s)\n"
		lacking  = "=== RUN   TestC\n    c_test.go:7: needs root\n--- SKIP: TestC (0.00s)\n"
		excluded = "skipped tests do not count as passed: "
	)
	for _, row := range []struct {
		name, out string
		suite     Suite
		want      string
	}{
		{"passed", passed, Suite{Must: true}, ""},
		{"a skip", passed + skipped, Suite{Must: true}, excluded + "TestB/of_it"},
		{"a skip without root", passed + lacking, Suite{Must: true}, excluded + "TestC"},
		{"a skip without root, accepted", passed + lacking, Suite{Lacking: true}, ""},
		{"a skip for another reason", skipped + lacking, Suite{Lacking: true}, excluded + "TestB/of_it"},
		{"none", "testing: warning: no tests to run\nPASS\n", Suite{Must: true}, "no test ran"},
		{"no test, as requested", "testing: warning: no tests to run\nPASS\n", Suite{}, ""},
	} {
		got := ""
		if err := row.suite.incomplete(row.out); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	const out = "=== RUN   TestA\n=== RUN   TestA/one\n    --- PASS: TestA/one (0.00s)\n--- FAIL: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/one\n"
	if got := unfinished(out); !slices.Equal(got, []string{"TestB", "TestB/one"}) {
		t.Errorf("%q", got)
	}
}
