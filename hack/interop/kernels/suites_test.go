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
	at := slices.IndexFunc(suites, func(s suite) bool { return s.name == "verbs/hca" })
	if at < 0 || !slices.ContainsFunc(suites, func(s suite) bool { return s.name == "bpf" && s.run == "" }) {
		t.Fatalf("%+v", suites)
	}
	run := regexp.MustCompile(suites[at].run)
	for _, name := range []string{"TestVlanBothWays", "TestBonds", "TestBondNativeIsCounted", "TestTeam", "TestTrainsInAVLAN"} {
		if !run.MatchString(name) {
			t.Errorf("%s is left out", name)
		}
	}
	for _, name := range []string{"TestModel", "TestBondsOfAnotherKind"} {
		if run.MatchString(name) {
			t.Errorf("%s is run", name)
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
