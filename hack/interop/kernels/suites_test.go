package main

import (
	"regexp"
	"slices"
	"testing"
)

// What CI runs has the tests of VLANs and bonds, and none that runs elsewhere too.
func TestShortSuites(t *testing.T) {
	suites, err := shortSuites(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(suites, func(s suite) bool { return s.name == "bpf" && s.run == "" }) {
		t.Fatalf("%+v", suites)
	}
	for name, in := range map[string]string{
		"TestVlanBothWays": "verbs/hca", "TestBonds": "verbs/hca", "TestTeam": "verbs/hca", "TestTrainsInAVLAN": "verbs/hca",
		"TestBondNativeIsCounted": "verbs/hca/nic", "TestModel": "", "TestBondsOfAnotherKind": "",
	} {
		runs := func(s suite) bool { return s.run != "" && regexp.MustCompile(s.run).MatchString(name) }
		if at := slices.IndexFunc(suites, runs); in == "" && at >= 0 || in != "" && (at < 0 || suites[at].name != in) {
			t.Errorf("%s is in the suites at %d of %+v, want it in %q", name, at, suites, in)
		}
	}
}

func TestIncomplete(t *testing.T) {
	const passed, skipped = "=== RUN   TestA\n--- PASS: TestA (0.00s)\n", "    --- SKIP: TestB/of_it (0.00s)\n--- PASS: TestB (0.01s)\n"
	for _, row := range []struct {
		name, out string
		suite     suite
		want      string
	}{
		{"passed", passed, suite{must: true}, ""},
		{"a skip", passed + skipped, suite{must: true}, "skipped tests do not count as passed: TestB/of_it"},
		{"none", "testing: warning: no tests to run\nPASS\n", suite{must: true}, "no test ran"},
		{"none of those that somebody asked for", "testing: warning: no tests to run\nPASS\n", suite{}, ""},
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
