// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"testing"

	"github.com/roced/roced/hack/interop/suite"
)

// TestSuites checks that the suites contain the tests of VLANs and bonds and of the steering program, and no tests that
// also run elsewhere.
func TestSuites(t *testing.T) {
	suites, err := suites(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(suites, func(s suite.Suite) bool { return s.Name == "bpf" && s.Run == "" }) {
		t.Fatalf("%+v", suites)
	}
	for name, in := range map[string]string{
		"TestVlanBothWays": "verbs/hca", "TestBonds": "verbs/hca", "TestTeam": "verbs/hca", "TestTrainsInAVLAN": "verbs/hca",
		"TestBondNativeIsCounted": "verbs/hca/nic", "TestModel": "",
	} {
		runs := func(s suite.Suite) bool { return s.Run != "" && regexp.MustCompile(s.Run).MatchString(name) }
		if at := slices.IndexFunc(suites, runs); in == "" && at >= 0 || in != "" && (at < 0 || suites[at].Name != in) {
			t.Errorf("%s is in the suites at %d of %+v, want it in %q", name, at, suites, in)
		}
	}
}
